#include "protocol/upstream_lines.hpp"

#include <charconv>

namespace bulkhead::upstream {

namespace {

constexpr std::size_t kept = 256;

std::string_view last(std::string_view text, std::size_t count) {
  return text.substr(text.size() - std::min(text.size(), count));
}

/// Reads the flat beginning of a JSON object: its members up to the first nested value.
class flat_reader {
public:
  explicit flat_reader(std::string_view text) : rest_{text} {}

  bool take(char byte) {
    skip_space();
    if (rest_.empty() || rest_.front() != byte) {
      return false;
    }
    rest_.remove_prefix(1);
    return true;
  }

  /// A string token without its quotes, escapes as they are.
  std::optional<std::string_view> string() {
    if (!take('"')) {
      return std::nullopt;
    }
    for (std::size_t i = 0; i < rest_.size(); ++i) {
      if (rest_[i] == '\\') {
        ++i;
      } else if (rest_[i] == '"') {
        auto content = rest_.substr(0, i);
        rest_.remove_prefix(i + 1);
        return content;
      }
    }
    return std::nullopt;
  }

  /// A string, number or literal; nothing for a nested or unfinished value.
  std::optional<std::string_view> scalar() {
    skip_space();
    if (!rest_.empty() && rest_.front() == '"') {
      return string();
    }
    auto end = rest_.find_first_of(",}{[ \t");
    if (end == 0 || end == std::string_view::npos || rest_[end] == '{' || rest_[end] == '[') {
      return std::nullopt;
    }
    auto token = rest_.substr(0, end);
    rest_.remove_prefix(end);
    return token;
  }

private:
  void skip_space() {
    auto start = rest_.find_first_not_of(" \t\r");
    rest_.remove_prefix(std::min(start, rest_.size()));
  }

  std::string_view rest_;
};

std::optional<std::uint64_t> number(std::string_view token) {
  std::uint64_t value = 0;
  auto [end, failure] = std::from_chars(token.data(), token.data() + token.size(), value);
  return failure == std::errc{} && end == token.data() + token.size() ? std::optional{value}
                                                                      : std::nullopt;
}

salvaged read_head(std::string_view head) {
  flat_reader reader{head};
  salvaged result;
  if (!reader.take('{')) {
    return result;
  }
  result.answer = true;
  do {
    auto key = reader.string();
    if (key == "method") {
      return {};
    }
    if (!key || !reader.take(':')) {
      break;
    }
    auto value = reader.scalar();
    if (!value) {
      break;
    }
    if (key == "id") {
      result.id = number(*value);
    }
  } while (reader.take(','));
  return result;
}

/// The id in `…,"id":7}`. A quote before `id` that isn't escaped and a comma or brace before it
/// make it a key; the brace that ends the line makes it a key of the outermost object.
std::optional<std::uint64_t> read_tail(std::string_view tail) {
  auto strip = [&] { tail = tail.substr(0, tail.find_last_not_of(" \t\r\n") + 1); };
  auto cut = [&](std::string_view suffix) {
    strip();
    bool found = tail.ends_with(suffix);
    tail.remove_suffix(found ? suffix.size() : 0);
    return found;
  };
  if (!cut("}")) {
    return std::nullopt;
  }
  strip();
  auto digits = last(tail, tail.size() - (tail.find_last_not_of("0123456789") + 1));
  tail.remove_suffix(digits.size());
  if (cut(":") && cut(R"("id")") && (cut(",") || cut("{"))) {
    return number(digits);
  }
  return std::nullopt;
}

} // namespace

void lines::feed(std::string_view bytes, const sink& to) {
  const line_splitter::sink parts = {to.line, [this] { dropping_ = errc::too_large; }};
  while (!bytes.empty()) {
    auto end = bytes.find('\n');
    auto piece = bytes.substr(0, end == std::string_view::npos ? end : end + 1);
    bytes.remove_prefix(piece.size());
    if (dropping_ != errc::none) {
      feed_dropped(piece, to);
      continue;
    }
    head_.assign(splitter_.partial(), 0, kept);
    tail_ = last(splitter_.partial(), kept);
    splitter_.feed(piece, parts);
    if (dropping_ != errc::none) {
      // What the splitter still skips of this line is ours to skip.
      splitter_ = line_splitter{max_line_};
      feed_dropped(piece, to);
    }
  }
}

void lines::feed_dropped(std::string_view piece, const sink& to) {
  keep_ends(piece);
  if (piece.ends_with('\n')) {
    auto reason = std::exchange(dropping_, errc::none);
    to.dropped(reason, head_, tail_);
  }
}

void lines::keep_ends(std::string_view piece) {
  head_.append(piece, 0, kept - std::min(kept, head_.size()));
  tail_.append(last(piece, kept));
  tail_.erase(0, tail_.size() - std::min(tail_.size(), kept));
}

void lines::drop_line(errc reason) {
  head_.assign(splitter_.partial(), 0, kept);
  tail_ = last(splitter_.partial(), kept);
  splitter_ = line_splitter{max_line_};
  dropping_ = reason;
}

salvaged salvage(std::string_view head, std::string_view tail) {
  auto result = read_head(head);
  if (result.answer && !result.id) {
    result.id = read_tail(tail);
  }
  return result;
}

} // namespace bulkhead::upstream
