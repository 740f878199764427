#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace bulkhead {

/// Cuts a byte stream into lines without an implicit limit: a line may come in any number of pieces
/// up to `max_line` bytes, its end not counted; a longer one is reported once, as soon as it is
/// seen, and skipped to its end.
class line_splitter {
public:
  struct sink {
    /// One line without its end (a trailing CR is left out, too). The view dies with the call.
    std::function<void(std::string_view)> line;
    /// A line exceeded the limit; its bytes are dropped.
    std::function<void()> overlong;
  };

  explicit line_splitter(std::size_t max_line) : max_line_{max_line} {}

  /// Takes the next bytes and calls the sink for each line they complete. The sink must not feed or
  /// destroy this splitter.
  void feed(std::string_view bytes, const sink& to);

  /// Bytes held of a line that hasn't ended.
  std::size_t held() const { return partial_.size(); }

  /// What is held of an unfinished line, for diagnosis at end of file.
  const std::string& partial() const { return partial_; }

private:
  void end_line(std::string_view rest, const sink& to);
  void hold(std::string_view rest, const sink& to);
  bool fits(std::string_view rest) const;

  std::size_t max_line_;
  std::string partial_;
  bool skipping_ = false;
};

} // namespace bulkhead
