#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "protocol/error.hpp"
#include "protocol/line_splitter.hpp"

namespace bulkhead::upstream {

/// Cuts a server's stdout into lines. Of a line that is dropped for its size the two ends are kept:
/// they tell whose answer it was.
class lines {
public:
  struct sink {
    /// One line without its end; the view dies with the call.
    std::function<void(std::string_view)> line;
    /// A line was dropped, once its end has arrived.
    std::function<void(errc reason, std::string_view head, std::string_view tail)> dropped;
  };

  explicit lines(std::size_t max_line) : max_line_{max_line}, splitter_{max_line} {}

  /// Takes the next bytes. The sink must not feed or destroy this object.
  void feed(std::string_view bytes, const sink& to);

  /// Bytes held of a line that hasn't ended.
  std::size_t held() const { return splitter_.held(); }

  /// Drops the line that hasn't ended, for want of memory; it is reported at its end.
  void drop_line(errc reason);

private:
  void keep_ends(std::string_view piece);
  void feed_dropped(std::string_view piece, const sink& to);

  std::size_t max_line_;
  line_splitter splitter_;
  errc dropping_ = errc::none;
  std::string head_;
  std::string tail_;
};

/// Whose message a line was that couldn't be read in full.
struct salvaged {
  /// It looks like an answer; otherwise it is noise, or a request or notification that nobody
  /// waits for.
  bool answer = false;
  /// The answer's id, if one of the ends shows it.
  std::optional<std::uint64_t> id;
  friend bool operator==(const salvaged&, const salvaged&) = default;
};

/// Finds out from the first and last bytes of a line (which may be the same) whose message it is.
/// Only members before the first nested value and the very last one are looked at, so that
/// nothing inside a result can pose as an id.
salvaged salvage(std::string_view head, std::string_view tail);

} // namespace bulkhead::upstream
