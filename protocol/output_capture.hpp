#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace bulkhead {

/// What is shown of one stream: the bytes at both ends and how many are left out between them.
struct captured_stream {
  std::string head;
  std::string tail; ///< empty when nothing was left out
  std::uint64_t total = 0;
  std::uint64_t omitted = 0;
  friend bool operator==(const captured_stream&, const captured_stream&) = default;

  /// Valid UTF-8 for a client: head, a line that counts what is left out, tail. Bytes that are not
  /// UTF-8 become U+FFFD.
  std::string text() const;

  /// The same stream with at most `capacity` bytes shown; `omitted` counts what that adds.
  captured_stream shortened(std::size_t capacity) const;
};

template <class Inspector>
auto inspect(Inspector& f, captured_stream& x) {
  return f(x.head, x.tail, x.total, x.omitted);
}

/// Keeps the head and the tail of a stream in `capacity` bytes however much comes.
class output_capture {
public:
  /// Half of `capacity` (bytes) is kept from the start, half from the end. Memory is taken as bytes
  /// come, up to the capacity.
  explicit output_capture(std::size_t capacity);

  void append(std::string_view bytes);

  std::uint64_t total() const { return total_; }

  /// What is kept so far; everything while no more than `capacity` bytes came. A cut that would
  /// split a UTF-8 character leaves out all of it.
  captured_stream take() const;

private:
  void append_to_tail(std::string_view bytes);

  std::size_t head_capacity_;
  std::size_t tail_capacity_;
  std::string head_;
  std::string tail_; ///< a ring once full; `tail_start_` is its oldest byte
  std::size_t tail_start_ = 0;
  std::uint64_t total_ = 0;
};

} // namespace bulkhead
