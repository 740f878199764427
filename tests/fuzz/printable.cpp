#include "protocol/printable.hpp"

#include <algorithm>
#include <utility>

#include "protocol/base64.hpp"
#include "protocol/json_scan.hpp"
#include "protocol/json_text.hpp"
#include "protocol/line_splitter.hpp"
#include "protocol/output_capture.hpp"
#include "protocol/upstream_text.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace bulkhead::fuzz {

namespace {

/// The character at the start of `text`, and its bytes; U+FFFD, one byte, where there is none.
std::pair<char32_t, std::size_t> first_character(std::string_view text) {
  std::size_t length = 1;
  while (length <= std::min<std::size_t>(text.size(), 4) && !is_utf8(text.substr(0, length))) {
    ++length;
  }
  if (length > std::min<std::size_t>(text.size(), 4)) {
    return {0xFFFD, 1};
  }
  auto byte = [&](std::size_t at) { return static_cast<unsigned char>(text[at]); };
  char32_t code = length == 1 ? byte(0) : byte(0) & (0x7FU >> length);
  for (std::size_t at = 1; at < length; ++at) {
    code = code << 6U | (byte(at) & 0x3FU);
  }
  return {code, length};
}

/// Control characters, and those with the property Bidi_Control (Unicode 15, PropList.txt).
bool drives_a_terminal(char32_t code) {
  return (code < 0x20 && code != '\n' && code != '\t') || (code >= 0x7F && code < 0xA0) ||
         code == 0x061C || code == 0x200E || code == 0x200F || (code >= 0x202A && code <= 0x202E) ||
         (code >= 0x2066 && code <= 0x2069);
}

void require_harmless(std::string_view text, std::string_view promise) {
  while (!text.empty()) {
    auto [code, length] = first_character(text);
    require(!drives_a_terminal(code), promise);
    text.remove_prefix(length);
  }
}

void check_printable(std::string_view text) {
  auto shown = bulkhead::printable(text);
  require_harmless(shown, "what is printable drives no terminal");
  require(!is_utf8(text) || is_utf8(shown), "printable text stays UTF-8");
  require(bulkhead::printable(shown) == shown, "what is printable stays as it is");
}

void check_shortened(std::string_view text, std::size_t most) {
  auto cut = shortened(std::string{text}, most);
  require(cut.size() <= std::max(text.size(), most + std::string_view{"…"}.size()),
          "a shortened text is within its bound");
  require(!is_utf8(text) || is_utf8(cut), "a shortened text is UTF-8");
  require(text.size() > most || cut == text, "a short text stays as it is");
}

void check_upstream(std::string_view text, std::size_t most) {
  auto shown = upstream::printable(text, most + 3);
  require(shown.size() <= most + 3 && is_utf8(shown), "a server's words are UTF-8 and bounded");
  for (std::string_view rest = shown; !rest.empty();) {
    auto [code, length] = first_character(rest);
    require(code >= 0x20 && (code < 0x7F || code >= 0xA0), "a server's words hold no controls");
    rest.remove_prefix(length);
  }
  upstream::stderr_tail tail{most + 1, upstream::secret_filter{{{"KEY", "secret"}}}};
  tail.append(text);
  auto last = tail.text();
  require(last.size() <= most + 1 && is_utf8(last), "a server's last words are UTF-8 and bounded");
  require(last.find("secret") == std::string::npos, "secrets are hidden");
}

void check_capture(std::string_view text, std::size_t capacity, std::size_t piece) {
  output_capture capture{capacity};
  for (auto rest = text; !rest.empty(); rest.remove_prefix(std::min(piece, rest.size()))) {
    capture.append(rest.substr(0, piece));
  }
  auto all = capture.take();
  for (auto size : {capacity, capacity / 2, std::size_t{1}}) {
    auto shown = all.shortened(size);
    require(shown.head.size() + shown.tail.size() <= size, "what is shown is bounded");
    require(shown.total == text.size() &&
                shown.omitted == text.size() - shown.head.size() - shown.tail.size(),
            "what is left out is counted");
    require(text.starts_with(shown.head) && text.ends_with(shown.tail), "both ends are shown");
    require(is_utf8(shown.text()), "an output is shown as UTF-8");
    require(!is_utf8(text) || (is_utf8(shown.head) && is_utf8(shown.tail)),
            "no character is cut in two");
  }
}

void check_texts(std::string_view text) {
  auto sound = to_utf8(text);
  require(is_utf8(sound) && to_utf8(sound) == sound, "text is made UTF-8 once");
  require(!is_utf8(text) || sound == text, "UTF-8 stays as it is");
  auto quoted = json_quote(text);
  require(scan_json(quoted, {quoted.size()}).has_value(), "a quoted text is JSON");
  require(decode_json_string(quoted) == sound, "a quoted text says the same");
  require(decode_base64(encode_base64(text)) == text, "base64 says the same");
  if (auto bytes = decode_base64(text)) {
    require(encode_base64(*bytes) == text, "base64 has one spelling");
  }
}

void check_lines(std::string_view text, std::size_t piece, std::size_t most) {
  auto split = [&](std::size_t size) {
    std::string lines;
    line_splitter splitter{most};
    const line_splitter::sink sink{[&](std::string_view line) {
                                     require(line.size() <= most, "a line is bounded");
                                     lines += std::string{line} + '\n';
                                   },
                                   [&] { lines += "too long\n"; }};
    for (auto rest = text; !rest.empty(); rest.remove_prefix(std::min(size, rest.size()))) {
      splitter.feed(rest.substr(0, size), sink);
      require(splitter.held() <= most + 1, "what is held of a line is bounded");
    }
    return lines;
  };
  require(split(piece) == split(std::max<std::size_t>(text.size(), 1)),
          "pieces make no difference to lines");
}

} // namespace

void printable_target(std::string_view input) {
  const auto most = take_number(input, 63);
  const auto piece = 1 + take_number(input, 15);
  check_printable(input);
  check_shortened(input, most);
  check_upstream(input, most);
  check_capture(input, most, piece);
  check_texts(input);
  check_lines(input, piece, most);
}

} // namespace bulkhead::fuzz
