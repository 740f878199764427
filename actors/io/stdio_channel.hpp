#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <boost/asio/posix/stream_descriptor.hpp>

#include "actors/io/io_thread.hpp"
#include "protocol/line_splitter.hpp"

namespace bulkhead::io {

/// Makes a descriptor non-blocking, and gives it back as it was: others may share it, as a shell
/// shares its terminal with us.
class nonblocking_mode {
public:
  explicit nonblocking_mode(int fd);
  nonblocking_mode(nonblocking_mode&&) = delete;
  /// Has to come before the descriptor is closed.
  ~nonblocking_mode();

private:
  int fd_;
  int flags_;
};

/// Lines in and bytes out over two descriptors of ours, e.g. stdin and stdout: pipes, sockets,
/// terminals or plain files. While a peer doesn't read, or whoever gets the lines doesn't keep up,
/// its input isn't read either.
class stdio_channel : public std::enable_shared_from_this<stdio_channel> {
public:
  /// Called on the I/O thread.
  struct events {
    std::function<void(std::string line)> line;
    std::function<void()> overlong; ///< a line over the limit was dropped
    std::function<void()> end;      ///< end of input or a read error; comes once
  };

  /// Takes both descriptors over. Sizes in bytes: reading stops while more than `write_ahead` waits
  /// to be written, or `read_ahead` and more of lines were told and not given back by `taken`.
  stdio_channel(io_thread& io, int in, int out, std::size_t max_line, std::size_t write_ahead,
                events to, std::size_t read_ahead = static_cast<std::size_t>(-1));
  ~stdio_channel();

  /// Starts reading. Thread-safe, like all that follows.
  void start();

  /// Lines of that many bytes, their ends included, have been dealt with.
  void taken(std::size_t bytes);

  /// Queues bytes; dropped silently once the peer has closed its end.
  void write(std::string bytes);

  /// Calls back on the I/O thread once all written so far is out or can't be.
  void when_drained(std::function<void()> done);

  /// Stops both directions; no event follows.
  void close();

private:
  void read_more();
  void wait_readable();
  void take_input(const char* data, std::size_t size);
  void report_end();
  void write_more();
  void drop_output();
  void finish_drains();
  void close_descriptors();

  boost::asio::io_context& context_;
  boost::asio::posix::stream_descriptor in_;
  boost::asio::posix::stream_descriptor out_;
  std::optional<nonblocking_mode> in_mode_;
  std::optional<nonblocking_mode> out_mode_;
  bool in_pollable_ = true; ///< plain files never block and can't be waited for
  int plain_in_ = -1;
  int plain_out_ = -1;
  std::size_t write_ahead_;
  std::size_t read_ahead_;
  std::size_t untaken_ = 0; ///< bytes of lines told and not yet taken
  events to_;
  line_splitter splitter_;
  std::vector<char> buffer_;
  std::deque<std::string> queue_;
  std::size_t queued_ = 0;
  std::size_t offset_ = 0; ///< written of queue_.front()
  bool reading_ = false;
  bool writing_ = false;
  bool broken_ = false;
  bool ended_ = false;
  bool closed_ = false;
  std::vector<std::function<void()>> drains_;
};

} // namespace bulkhead::io
