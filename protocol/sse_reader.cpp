#include "protocol/sse_reader.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

#include "protocol/limits.hpp"

namespace bulkhead {

namespace {

constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";
constexpr std::chrono::milliseconds longest_retry = std::chrono::hours{1};

/// Ids come back to the server in a header.
constexpr std::size_t longest_id = 1024;

/// What stays allocated for the next line.
constexpr std::size_t kept_capacity = 64 * kibibyte;

} // namespace

void sse_reader::feed(std::string_view bytes, const sink& to) {
  while (!bytes.empty()) {
    if (after_return_) {
      after_return_ = false;
      if (bytes.front() == '\n') {
        bytes.remove_prefix(1);
        continue;
      }
    }
    auto end = bytes.find_first_of("\r\n");
    if (end == std::string_view::npos) {
      hold(bytes, to);
      return;
    }
    hold(bytes.substr(0, end), to);
    after_return_ = bytes[end] == '\r';
    bytes.remove_prefix(end + 1);
    end_line(to);
  }
}

void sse_reader::hold(std::string_view part, const sink& to) {
  line_begun_ |= !part.empty();
  if (skipping_) {
    return;
  }
  if (held() + part.size() > most_bytes_) {
    drop_event();
    to.overlong();
    return;
  }
  line_.append(part);
}

void sse_reader::restart() {
  drop_event();
  skipping_ = anything_ = line_begun_ = after_return_ = begun_ = false;
}

void sse_reader::drop_event() {
  std::string{}.swap(line_);
  event_ = {"", {}, std::nullopt};
  has_data_ = false;
  skipping_ = true;
}

void sse_reader::end_line(const sink& to) {
  bool empty = !std::exchange(line_begun_, false);
  if (skipping_) {
    if (empty) {
      skipping_ = anything_ = false;
    }
    return;
  }
  std::string_view line = line_;
  if (!std::exchange(begun_, true) && line.starts_with(byte_order_mark)) {
    line.remove_prefix(byte_order_mark.size());
  }
  if (line.empty()) {
    end_event(to);
  } else {
    take_field(line);
  }
  line_.clear();
  if (line_.capacity() > kept_capacity) {
    std::string{}.swap(line_);
  }
}

void sse_reader::take_field(std::string_view line) {
  auto colon = line.find(':');
  auto name = line.substr(0, colon);
  auto value = colon == std::string_view::npos ? std::string_view{} : line.substr(colon + 1);
  if (value.starts_with(' ')) {
    value.remove_prefix(1);
  }
  if (name == "data") {
    event_.data.append(has_data_ ? "\n" : "").append(value);
    has_data_ = anything_ = true;
  } else if (name == "event") {
    event_.type = value;
    anything_ = true;
  } else if (name == "id" && value.size() <= longest_id &&
             value.find('\0') == std::string_view::npos) {
    event_.id = std::string{value};
    anything_ = true;
  } else if (name == "retry" && !value.empty() &&
             value.find_first_not_of("0123456789") == std::string_view::npos) {
    std::int64_t wanted = longest_retry.count();
    std::from_chars(value.data(), value.data() + value.size(), wanted); // unchanged if too large
    retry_ = std::min(std::chrono::milliseconds{wanted}, longest_retry);
  }
}

void sse_reader::end_event(const sink& to) {
  if (!std::exchange(anything_, false)) {
    return;
  }
  auto event = std::exchange(event_, {"", {}, std::nullopt});
  has_data_ = false;
  if (event.type.empty()) {
    event.type = "message";
  }
  if (event.id) {
    last_id_ = *event.id;
  }
  to.event(event);
}

} // namespace bulkhead
