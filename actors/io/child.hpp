#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include <sys/types.h>

#include "protocol/wire.hpp"

namespace bulkhead::io {

/// What a child tells its owner.
struct child_events {
  std::function<void(stream_id, std::string)> output;
  std::function<void(std::uint64_t)> written;
  /// The child is gone and all it wrote has been delivered; nothing follows.
  std::function<void(std::int32_t exit_code, std::int32_t signal)> exited;
};

/// A program with three streams that somebody owns: a process of ours, or a container that an
/// engine's service runs. Lives on the I/O thread; every member function is called there.
class child {
public:
  virtual ~child() = default;

  /// 0 when it is no process of ours.
  virtual pid_t pid() const = 0;

  /// Starts reading at most `credit` bytes ahead on each stream, and waiting for the end.
  virtual void begin(child_events to, std::uint64_t credit) = 0;

  /// Allows `bytes` more to be read from a stream.
  virtual void add_credit(stream_id stream, std::uint64_t bytes) = 0;

  /// Queues bytes for stdin. After the child closed its end they are dropped and reported written.
  virtual void write(std::string bytes) = 0;

  /// Closes stdin once what is queued is out.
  virtual void close_input() = 0;

  virtual void signal(int signal) = 0;

  /// Reports no output any more and gives credit without end: the owner is gone or doesn't care.
  virtual void mute() = 0;
};

using child_ptr = std::shared_ptr<child>;

} // namespace bulkhead::io
