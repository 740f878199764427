#include "protocol/http_framing.hpp"

#include <algorithm>

#include "protocol/http_token.hpp"

namespace bulkhead {

namespace {

constexpr std::string_view line_end = "\r\n";
constexpr std::string_view head_end = "\r\n\r\n";

/// Does each CR go with an LF, and each LF with a CR? The last byte may be half of a pair.
bool has_sound_lines(std::string_view text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\n' && (i == 0 || text[i - 1] != '\r')) {
      return false;
    }
    if (text[i] == '\r' && i + 1 < text.size() && text[i + 1] != '\n') {
      return false;
    }
  }
  return true;
}

/// A line that goes on in the next one (RFC 9112, 5.2), which nobody sends any more.
bool has_folded_lines(std::string_view text) {
  return text.find("\r\n ") != std::string_view::npos ||
         text.find("\r\n\t") != std::string_view::npos;
}

bool is_number(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

} // namespace

tl::expected<std::size_t, std::uint32_t> length_of_head(std::string_view come,
                                                        const head_bounds& bounds) {
  auto end = come.find(head_end);
  auto text = end == std::string_view::npos ? come : come.substr(0, end + head_end.size());
  // Also TLS, where none is spoken here: it needn't wait for an end that never comes.
  if (!text.empty() && !is_token_char(text.front())) {
    return tl::unexpected{400U};
  }
  if (std::min(text.find(line_end), text.size()) > bounds.line) {
    return tl::unexpected{414U};
  }
  if (text.size() > bounds.whole) {
    return tl::unexpected{431U};
  }
  if (!has_sound_lines(text) || has_folded_lines(text) ||
      text.find('\0') != std::string_view::npos) {
    return tl::unexpected{400U};
  }
  return end == std::string_view::npos ? 0 : text.size();
}

tl::expected<void, std::uint32_t> check_framing(const incoming_request& request, bool old_client) {
  auto lengths = request.count("content-length");
  auto codings = request.count("transfer-encoding");
  if (lengths + codings > 1) {
    return tl::unexpected{400U};
  }
  if (lengths == 1 && !is_number(*request.find("content-length"))) {
    return tl::unexpected{400U};
  }
  // HTTP/1.0 knows no codings (RFC 9112, 6.1); the only one that we know of HTTP/1.1 is this.
  if (codings == 1 && (old_client || !same_name(*request.find("transfer-encoding"), "chunked"))) {
    return tl::unexpected{400U};
  }
  const auto* expects = request.find("expect");
  if (expects != nullptr && !same_name(*expects, "100-continue")) {
    return tl::unexpected{417U};
  }
  return {};
}

} // namespace bulkhead
