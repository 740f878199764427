#include "protocol/toon.hpp"

#include <charconv>
#include <cmath>

#include "protocol/json_scan.hpp"
#include "protocol/toon_scalar.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace bulkhead::fuzz {

namespace {

using nlohmann::ordered_json;

/// What a reader would make of a scalar as it is written.
ordered_json read_scalar(const std::string& text) {
  if (text.starts_with('"')) {
    auto value = ordered_json::parse(text, nullptr, false);
    require(value.is_string(), "what is quoted is a string");
    return value;
  }
  if (text == "true" || text == "false" || text == "null") {
    return ordered_json::parse(text);
  }
  double number = 0;
  auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  bool whole = failure == std::errc{} && end == text.data() + text.size();
  if (whole && (text[0] == '-' || (text[0] >= '0' && text[0] <= '9'))) {
    return number;
  }
  return text;
}

void check_string(const std::string& text) {
  auto written = toon_string(text);
  require(is_utf8(written), "TOON is UTF-8");
  require(written.find_first_of("\r\n\t") == std::string::npos, "a scalar is one line");
  require(read_scalar(written) == ordered_json(to_utf8(text)), "a string stays that string");
  auto key = toon_key(text);
  require(!key.empty() && key.find('\n') == std::string::npos, "a key is one line");
  require(key.starts_with('"') || key == text, "a bare key is as it is");
}

void check_scalars(const ordered_json& value) {
  if (value.is_string()) {
    check_string(value.get<std::string>());
  } else if (value.is_number_float()) {
    auto number = value.get<double>();
    auto read = read_scalar(toon_number(number));
    require(std::isfinite(number) ? read == ordered_json(number) : read.is_null(),
            "a number stays that number");
  }
  for (const auto& [key, member] : value.items()) {
    if (value.is_object()) {
      check_string(key);
    }
    if (member.is_structured() || value.is_structured()) {
      check_scalars(member);
    }
  }
}

/// Lines, indented by pairs of spaces, each at most one level deeper than the one before, or two in
/// an object that is a list's item.
void check_lines(std::string_view text) {
  require(is_utf8(text), "TOON is UTF-8");
  require(text.empty() || text.back() != '\n', "no line follows the last");
  std::size_t before = 0;
  while (!text.empty()) {
    auto line = take_until(text, '\n');
    require(!line.empty() && line.back() != ' ', "no line is empty or ends in a space");
    auto indent = line.find_first_not_of(' ');
    require(indent % 2 == 0 && indent <= before + 4, "lines are indented step by step");
    before = indent;
    for (char c : line) {
      require(static_cast<unsigned char>(c) >= 0x20, "a line has no control characters");
    }
  }
}

} // namespace

void toon_target(std::string_view input) {
  check_string(std::string{input});
  if (!scan_json(input, {input.size(), 20, 1000})) {
    return;
  }
  auto value = ordered_json::parse(input, nullptr, false);
  if (value.is_discarded()) {
    return; // a number that no double holds
  }
  check_scalars(value);
  auto text = encode_toon(value);
  check_lines(text);
  require(encode_toon(value) == text, "a value is written in one way");
  auto sorted = nlohmann::json::parse(input);
  auto resorted = ordered_json::parse(sorted.dump());
  require(encode_toon(sorted) == encode_toon(resorted), "members come in the order they have");
}

} // namespace bulkhead::fuzz
