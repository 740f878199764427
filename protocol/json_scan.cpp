#include "protocol/json_scan.hpp"

#include <algorithm>
#include <deque>

#include <fmt/format.h>

#include "protocol/json_text.hpp"

namespace bulkhead {

namespace {

constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";

bool is_digit(char byte) {
  return byte >= '0' && byte <= '9';
}

/// One pass over a text; the functions that answer `bool` leave the reason in `error_`.
class scanner {
public:
  scanner(std::string_view text, const scan_limits& limits) : text_{text}, limits_{limits} {}

  const json_fault& fault() const { return fault_; }

  expected<json_outline> run() {
    if (text_.size() > limits_.bytes) {
      return fail(errc::too_large, fmt::format("a JSON text of {} bytes is over the limit of {} "
                                               "bytes; send less data at once",
                                               text_.size(), limits_.bytes));
    }
    if (!scan()) {
      return tl::unexpected<error>(std::move(error_));
    }
    return std::move(outline_);
  }

private:
  struct key_entry {
    std::string_view name; ///< decoded; points into the text or into `decoded_`
    std::size_t offset;
  };

  struct container {
    bool is_object;
    std::size_t first_key;
    std::size_t first_decoded;
  };

  /// The content of a string token and whether it holds escapes.
  struct string_token {
    std::string_view content;
    bool escaped = false;
  };

  bool scan();
  bool begin_value(bool& complete);
  bool open(bool is_object, bool& complete);
  bool close();
  bool after_value(bool& complete);
  bool count_node();
  bool read_key();
  bool read_string(string_token& token);
  bool read_literal(std::string_view word);
  bool read_number();
  bool read_digits();
  bool unique_keys(std::size_t first);
  bool end_of_text();
  void note_member_end();

  bool malformed(std::string_view why) { return malformed_at(at_, why); }

  bool malformed_at(std::size_t offset, std::string_view why) {
    error_ = {errc::malformed, fmt::format("no valid JSON at byte {}: {}", offset, why)};
    fault_.offset = offset;
    fault_.why = why;
    return false;
  }

  bool over(std::string_view what, std::size_t limit) {
    error_ = {errc::too_large, fmt::format("a JSON text with more than {} {} at byte {}; simplify "
                                           "the data or send it in parts",
                                           limit, what, at_)};
    fault_.offset = at_;
    fault_.why = fmt::format("more than {} {}", limit, what);
    return false;
  }

  bool at_end() const { return at_ >= text_.size(); }
  char peek() const { return at_end() ? '\0' : text_[at_]; }

  bool take(char byte) {
    if (at_end() || text_[at_] != byte) {
      return false;
    }
    ++at_;
    return true;
  }

  void skip_space() {
    while (!at_end() &&
           (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\r' || text_[at_] == '\t')) {
      ++at_;
    }
  }

  bool in_outermost_object() const { return open_.size() == 1 && open_.front().is_object; }

  std::string_view text_;
  scan_limits limits_;
  std::size_t at_ = 0;
  std::size_t nodes_ = 0;
  std::size_t member_start_ = 0;
  std::vector<container> open_;
  std::vector<key_entry> keys_;     ///< of all open objects, outermost first
  std::deque<std::string> decoded_; ///< names of `keys_` that hold escapes
  json_outline outline_;
  error error_;
  json_fault fault_;
};

bool scanner::scan() {
  if (text_.substr(0, byte_order_mark.size()) == byte_order_mark) {
    return malformed("a byte order mark; send UTF-8 without one");
  }
  skip_space();
  const auto start = at_;
  outline_.is_object = peek() == '{';
  for (;;) {
    bool complete = false;
    if (!begin_value(complete)) {
      return false;
    }
    while (complete) {
      if (open_.empty()) {
        outline_.text = text_.substr(start, at_ - start);
        return end_of_text();
      }
      if (!after_value(complete)) {
        return false;
      }
    }
  }
}

bool scanner::end_of_text() {
  skip_space();
  return at_end() || malformed("something follows the end of the value");
}

bool scanner::begin_value(bool& complete) {
  if (in_outermost_object()) {
    member_start_ = at_;
  }
  if (!count_node()) {
    return false;
  }
  complete = true;
  string_token ignored;
  switch (peek()) {
  case '{':
    return open(true, complete);
  case '[':
    return open(false, complete);
  case '"':
    return read_string(ignored);
  case 't':
    return read_literal("true");
  case 'f':
    return read_literal("false");
  case 'n':
    return read_literal("null");
  default:
    return at_end() ? malformed("the text ends where a value is expected") : read_number();
  }
}

bool scanner::open(bool is_object, bool& complete) {
  if (open_.size() >= limits_.depth) {
    return over("levels of nesting", limits_.depth);
  }
  ++at_;
  open_.push_back({is_object, keys_.size(), decoded_.size()});
  skip_space();
  if (peek() == (is_object ? '}' : ']')) {
    return close();
  }
  complete = false;
  return !is_object || read_key();
}

bool scanner::close() {
  ++at_;
  const auto closed = open_.back();
  open_.pop_back();
  if (closed.is_object) {
    if (!unique_keys(closed.first_key)) {
      return false;
    }
    keys_.resize(closed.first_key);
    decoded_.resize(closed.first_decoded);
  }
  return true;
}

bool scanner::after_value(bool& complete) {
  note_member_end();
  skip_space();
  const bool is_object = open_.back().is_object;
  if (take(',')) {
    complete = false;
    skip_space();
    return !is_object || read_key();
  }
  if (peek() == (is_object ? '}' : ']') && !at_end()) {
    return close();
  }
  return malformed(is_object ? "expected ',' or '}' after a member"
                             : "expected ',' or ']' after an element");
}

void scanner::note_member_end() {
  if (in_outermost_object()) {
    outline_.members.back().value = text_.substr(member_start_, at_ - member_start_);
  }
}

bool scanner::count_node() {
  ++nodes_;
  return nodes_ <= limits_.nodes || over("values and keys", limits_.nodes);
}

bool scanner::read_key() {
  if (!count_node()) {
    return false;
  }
  const auto offset = at_;
  if (peek() != '"') {
    return malformed("expected a key in double quotes");
  }
  string_token token;
  if (!read_string(token)) {
    return false;
  }
  auto name = token.content;
  if (token.escaped) {
    name = decoded_.emplace_back(unescape_json(token.content));
  }
  keys_.push_back({name, offset});
  if (open_.size() == 1) {
    outline_.members.push_back({std::string{name}, {}});
  }
  skip_space();
  if (!take(':')) {
    return malformed("expected ':' after a key");
  }
  skip_space();
  return true;
}

bool scanner::read_string(string_token& token) {
  const auto start = ++at_;
  for (;;) {
    at_ += plain_run(text_, at_);
    if (at_end()) {
      return malformed_at(start - 1, "a string without its closing quote");
    }
    const auto byte = static_cast<unsigned char>(text_[at_]);
    if (byte == '"') {
      token.content = text_.substr(start, at_ - start);
      ++at_;
      return true;
    }
    std::size_t length = 0;
    if (byte == '\\') {
      token.escaped = true;
      length = read_json_escape(text_, at_).length;
      if (length == 0) {
        return malformed("an unknown escape, or one of half a surrogate pair, in a string");
      }
    } else if (byte < 0x20) {
      return malformed("a control character in a string, which must be escaped");
    } else if ((length = multibyte_run(text_, at_)) == 0) {
      return malformed("bytes in a string that are not UTF-8");
    }
    at_ += length;
  }
}

bool scanner::read_literal(std::string_view word) {
  if (text_.substr(at_, word.size()) != word) {
    return malformed("an unknown word; JSON has true, false and null");
  }
  at_ += word.size();
  return true;
}

bool scanner::read_digits() {
  if (!is_digit(peek())) {
    return malformed("expected a digit");
  }
  while (is_digit(peek())) {
    ++at_;
  }
  return true;
}

bool scanner::read_number() {
  const bool negative = take('-');
  if (!is_digit(peek())) {
    return malformed(negative ? "expected a digit after '-'" : "expected a value");
  }
  if (!take('0') && !read_digits()) {
    return false;
  }
  if (take('.') && !read_digits()) {
    return false;
  }
  if (take('e') || take('E')) {
    if (!take('+')) {
      take('-');
    }
    return read_digits();
  }
  return true;
}

bool scanner::unique_keys(std::size_t first) {
  const auto begin = keys_.begin() + static_cast<std::ptrdiff_t>(first);
  const auto by_name = [](const key_entry& left, const key_entry& right) {
    return left.name < right.name;
  };
  const auto same_name = [](const key_entry& left, const key_entry& right) {
    return left.name == right.name;
  };
  // Sorting, unlike hashing, has no bad case that a hostile text could choose.
  std::sort(begin, keys_.end(), by_name);
  const auto twin = std::adjacent_find(begin, keys_.end(), same_name);
  if (twin == keys_.end()) {
    return true;
  }
  fault_.duplicate_key = twin->name;
  return malformed_at(std::max(twin->offset, std::next(twin)->offset),
                      "a key that its object already has");
}

} // namespace

std::string_view json_outline::find(std::string_view key) const {
  for (const auto& member : members) {
    if (member.key == key) {
      return member.value;
    }
  }
  return {};
}

expected<json_outline> scan_json(std::string_view text, const scan_limits& limits,
                                 json_fault* fault) {
  scanner scan{text, limits};
  auto result = scan.run();
  if (fault != nullptr) {
    *fault = scan.fault();
  }
  return result;
}

std::string decode_json_string(std::string_view token) {
  return is_json_string(token) ? unescape_json(token.substr(1, token.size() - 2)) : std::string{};
}

bool is_json_string(std::string_view token) {
  return token.size() >= 2 && token.front() == '"';
}

bool is_json_object(std::string_view token) {
  return !token.empty() && token.front() == '{';
}

bool is_json_array(std::string_view token) {
  return !token.empty() && token.front() == '[';
}

bool is_json_integer(std::string_view token) {
  return !token.empty() && (token.front() == '-' || is_digit(token.front())) &&
         token.find_first_of(".eE") == std::string_view::npos;
}

} // namespace bulkhead
