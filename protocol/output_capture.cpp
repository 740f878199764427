#include "protocol/output_capture.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "protocol/utf8.hpp"

namespace bulkhead {

std::string captured_stream::text() const {
  auto result = to_utf8(head);
  if (omitted == 0) {
    return result + to_utf8(tail);
  }
  if (!result.empty() && result.back() != '\n') {
    result += '\n';
  }
  result += fmt::format("[… {} bytes left out …]\n", omitted);
  return result + to_utf8(tail);
}

captured_stream captured_stream::shortened(std::size_t capacity) const {
  if (head.size() + tail.size() <= capacity) {
    return *this;
  }
  // What was left out before lies between the two halves, so each is cut at its inner end.
  const std::string_view first{head};
  const std::string_view last = omitted == 0 && tail.empty() ? first : std::string_view{tail};
  const auto first_size = std::min(capacity - capacity / 2, first.size());
  const auto last_size = std::min(capacity / 2, last.size());
  captured_stream result;
  result.head = trim_split_end(first.substr(0, first_size));
  result.tail = trim_split_start(last.substr(last.size() - last_size));
  result.total = total;
  result.omitted = total - result.head.size() - result.tail.size();
  return result;
}

output_capture::output_capture(std::size_t capacity)
    : head_capacity_{capacity - capacity / 2}, tail_capacity_{capacity / 2} {}

void output_capture::append(std::string_view bytes) {
  total_ += bytes.size();
  const auto to_head = std::min(head_capacity_ - head_.size(), bytes.size());
  head_.append(bytes.substr(0, to_head));
  append_to_tail(bytes.substr(to_head));
}

void output_capture::append_to_tail(std::string_view bytes) {
  if (bytes.size() >= tail_capacity_) {
    tail_ = bytes.substr(bytes.size() - tail_capacity_);
    tail_start_ = 0;
    return;
  }
  const auto room = std::min(tail_capacity_ - tail_.size(), bytes.size());
  tail_.append(bytes.substr(0, room));
  bytes.remove_prefix(room);
  while (!bytes.empty()) {
    const auto piece = std::min(tail_capacity_ - tail_start_, bytes.size());
    std::copy_n(bytes.begin(), piece, tail_.begin() + static_cast<std::ptrdiff_t>(tail_start_));
    tail_start_ = (tail_start_ + piece) % tail_capacity_;
    bytes.remove_prefix(piece);
  }
}

captured_stream output_capture::take() const {
  auto ends = tail_.substr(tail_start_) + tail_.substr(0, tail_start_);
  captured_stream result;
  result.total = total_;
  if (total_ == head_.size() + ends.size()) {
    result.head = head_ + ends;
    return result;
  }
  result.head = trim_split_end(head_);
  result.tail = trim_split_start(ends);
  result.omitted = total_ - result.head.size() - result.tail.size();
  return result;
}

} // namespace bulkhead
