#include "protocol/server_config.hpp"

namespace bulkhead {

namespace {

/// Walks a text once; `text_` is changed in place, byte for byte.
class comment_stripper {
public:
  explicit comment_stripper(std::string_view text) : text_(text) {}

  std::string run() {
    if (text_.starts_with("\xEF\xBB\xBF")) {
      blank(0, 3);
    }
    while (at_ < text_.size()) {
      step();
    }
    return std::move(text_);
  }

private:
  void step() {
    char c = text_[at_];
    if (c == ' ' || c == '\t' || c == '\r' || c == '\n') {
      ++at_;
    } else if (c == '/' && skip_comment()) {
      return;
    } else {
      take(c);
    }
  }

  /// Takes the byte or string at `at_`, which is neither white space nor a comment.
  void take(char c) {
    if ((c == '}' || c == ']') && trailing_comma_ != std::string::npos) {
      text_[trailing_comma_] = ' ';
    }
    // A comma without a value before it stays, so that `[,]` remains an error.
    bool after_value = last_ != '\0' && std::string_view("[{,:").find(last_) == std::string::npos;
    trailing_comma_ = c == ',' && after_value ? at_ : std::string::npos;
    last_ = c;
    ++at_;
    if (c == '"') {
      skip_string();
    }
  }

  void skip_string() {
    while (at_ < text_.size() && text_[at_] != '"') {
      at_ += text_[at_] == '\\' ? 2 : 1;
    }
    ++at_;
  }

  bool skip_comment() {
    auto opening = std::string_view(text_).substr(at_, 2);
    std::size_t end = std::string::npos;
    if (opening == "//") {
      end = std::min(text_.find('\n', at_), text_.size());
    } else if (opening == "/*") {
      auto closing = text_.find("*/", at_ + 2);
      end = closing == std::string::npos ? closing : closing + 2;
    }
    if (end == std::string::npos) {
      return false; // no comment, or one without end: left for the JSON reader to refuse
    }
    blank(at_, end);
    at_ = end;
    return true;
  }

  void blank(std::size_t from, std::size_t to) {
    for (; from < to; ++from) {
      if (text_[from] != '\n' && text_[from] != '\r') {
        text_[from] = ' ';
      }
    }
  }

  std::string text_;
  std::size_t at_ = 0;
  std::size_t trailing_comma_ = std::string::npos;
  char last_ = '\0';
};

} // namespace

std::string strip_json_comments(std::string_view text) {
  return comment_stripper(text).run();
}

} // namespace bulkhead
