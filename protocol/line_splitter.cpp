#include "protocol/line_splitter.hpp"

#include "protocol/limits.hpp"

namespace bulkhead {

namespace {

/// What stays allocated for the next line; a longer line's memory is given back.
constexpr std::size_t kept_capacity = 64 * kibibyte;

std::string_view without_return(std::string_view line) {
  if (!line.empty() && line.back() == '\r') {
    line.remove_suffix(1);
  }
  return line;
}

} // namespace

void line_splitter::feed(std::string_view bytes, const sink& to) {
  std::size_t end = 0;
  while ((end = bytes.find('\n')) != std::string_view::npos) {
    end_line(bytes.substr(0, end), to);
    bytes.remove_prefix(end + 1);
  }
  hold(bytes, to);
}

void line_splitter::end_line(std::string_view rest, const sink& to) {
  if (skipping_) {
    skipping_ = false;
    return;
  }
  if (!fits(rest)) {
    to.overlong();
  } else if (partial_.empty()) {
    to.line(without_return(rest));
  } else {
    partial_.append(rest);
    to.line(without_return(partial_));
  }
  partial_.clear();
  if (partial_.capacity() > kept_capacity) {
    std::string{}.swap(partial_);
  }
}

void line_splitter::hold(std::string_view rest, const sink& to) {
  if (skipping_) {
    return;
  }
  if (fits(rest)) {
    partial_.append(rest);
    return;
  }
  skipping_ = true;
  std::string{}.swap(partial_);
  to.overlong();
}

/// True if the held bytes and `rest` may be a line; a CR at the very end may belong to its end.
bool line_splitter::fits(std::string_view rest) const {
  const auto size = partial_.size() + rest.size();
  const auto last = rest.empty() ? std::string_view{partial_} : rest;
  return size <= max_line_ || (size - 1 == max_line_ && last.back() == '\r');
}

} // namespace bulkhead
