#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <sys/types.h>

#include <boost/asio/posix/stream_descriptor.hpp>

#include "actors/io/child.hpp"
#include "actors/io/io_thread.hpp"
#include "actors/messages.hpp"
#include "protocol/error.hpp"

namespace bulkhead::io {

/// A child process with its three pipes, in a process group of its own. Lives on the I/O thread;
/// every member function is called there.
class child_process : public child, public std::enable_shared_from_this<child_process> {
public:
  using events = child_events;

  /// Starts the process; it reads nothing and reports nothing before `begin`. Errors: not_found
  /// (the program, with the PATH searched), unavailable (the system refused, with its reason).
  static expected<std::shared_ptr<child_process>> start(io_thread& io, const process_spec& spec);
  ~child_process() override;

  pid_t pid() const override { return pid_; }
  void begin(events to, std::uint64_t credit) override;
  void add_credit(stream_id stream, std::uint64_t bytes) override;
  void write(std::string bytes) override;
  void close_input() override;
  /// Sends `signal` to the process group while the leader isn't reaped.
  void signal(int signal) override;
  void mute() override;

private:
  struct pipe_end {
    explicit pipe_end(boost::asio::io_context& context) : descriptor{context} {}
    boost::asio::posix::stream_descriptor descriptor;
    std::uint64_t credit = 0;
    std::uint64_t left = UINT64_MAX; ///< to be read; known once the child is reaped
    bool waiting = false;
    bool closed = false;
  };

  child_process(io_thread& io, const process_spec& spec);
  pipe_end& end_of(stream_id stream) { return stream == stream_id::out ? out_ : err_; }
  void read_more(stream_id stream);
  void close_stream(stream_id stream);
  void write_more();
  void drop_input();
  void wait_for_exit();
  void reap();
  bool follow_successor();
  std::uint64_t unread(stream_id stream);
  void report_when_over();

  io_thread& io_;
  boost::asio::posix::stream_descriptor exit_; ///< the pidfd
  boost::asio::posix::stream_descriptor in_;
  pipe_end out_;
  pipe_end err_;
  events to_;
  pid_t pid_ = -1;
  bool kill_group_;
  std::string successor_file_; ///< empty once it was looked into
  bool followed_ = false;      ///< pid_ is the successor's
  bool reaped_ = false;
  bool reported_ = false;
  bool muted_ = false;
  std::int32_t exit_code_ = 0;
  std::int32_t signal_ = 0;
  std::deque<std::string> queue_;
  std::size_t offset_ = 0;
  bool writing_ = false;
  bool closing_input_ = false;
};

/// The file that `program` names: itself when it holds a slash, else the first executable on the
/// PATH of `env` (NAME=VALUE). Errors: not_found.
expected<std::string> find_program(const std::string& program, const std::vector<std::string>& env);

} // namespace bulkhead::io
