#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace bulkhead {

/// One server-sent event.
struct sse_event {
  std::string type; ///< "message" unless the event names another
  std::string data; ///< its lines, joined by line feeds
  /// The id that it gives the stream's position; nothing when it gives none.
  std::optional<std::string> id;
};

/// Reads a stream of server-sent events (HTML Living Standard, 9.2.6 "Interpreting an event
/// stream"), in pieces of any size. An event that isn't ended by an empty line is none. One with
/// more than `most_bytes` in its lines is reported once and skipped.
class sse_reader {
public:
  struct sink {
    /// An event, also one without data: servers send such to tell an id.
    std::function<void(const sse_event&)> event;
    std::function<void()> overlong;
  };

  explicit sse_reader(std::size_t most_bytes) : most_bytes_{most_bytes} {}

  /// Takes the next bytes. The sink must not feed or destroy this reader.
  void feed(std::string_view bytes, const sink& to);

  /// How long to wait before the stream is opened again, as the server wants it; at most an hour.
  std::optional<std::chrono::milliseconds> retry() const { return retry_; }

  /// The position up to which events have been read; empty when the server tells none.
  const std::string& last_id() const { return last_id_; }

  /// Bytes held of an event that hasn't ended.
  std::size_t held() const { return line_.size() + event_.data.size() + event_.type.size(); }

  /// Another stream goes on where this one broke off: what is held of an event is dropped.
  void restart();

  /// Gives up what is held: the event is skipped to its end.
  void drop_event();

private:
  void hold(std::string_view part, const sink& to);
  void end_line(const sink& to);
  void take_field(std::string_view line);
  void end_event(const sink& to);

  std::size_t most_bytes_;
  std::string line_;
  sse_event event_{"", "", std::nullopt};
  std::string last_id_;
  std::optional<std::chrono::milliseconds> retry_;
  bool has_data_ = false;
  bool after_return_ = false; ///< a line feed that comes now belongs to that carriage return
  bool begun_ = false;        ///< a byte order mark can't come any more
  bool skipping_ = false;     ///< the event is over the limit
  bool anything_ = false;     ///< the event has a field
  bool line_begun_ = false;   ///< of a line that is skipped: it isn't empty
};

} // namespace bulkhead
