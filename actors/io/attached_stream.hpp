#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>

#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>

#include "actors/io/child.hpp"
#include "actors/io/http_socket.hpp"
#include "actors/io/io_thread.hpp"
#include "protocol/container_rest.hpp"

namespace bulkhead::io {

/// A container whose stdio comes over a connection to its engine's service; to its owner a child
/// like any other. The end of the stream is the end of its program, whose exit code the service is
/// then asked for.
class attached_stream : public child, public std::enable_shared_from_this<attached_stream> {
public:
  using opened = std::function<void(expected<std::shared_ptr<attached_stream>>)>;

  /// Attaches to the container, which need not run yet; `done` is called later. Errors: those of
  /// `exchange`, and unavailable with the service's complaint.
  static void open(io_thread& io, stream_request request, opened done);

  pid_t pid() const override { return 0; }
  void begin(child_events to, std::uint64_t credit) override;
  void add_credit(stream_id stream, std::uint64_t bytes) override;
  void write(std::string bytes) override;
  void close_input() override;
  /// SIGKILL has the service kill and remove the container. SIGHUP gives up a service that hangs:
  /// the stream ends at once, as if the program had been killed. Others do nothing.
  void signal(int signal) override;
  void mute() override;

private:
  attached_stream(io_thread& io, stream_request request);
  struct handshake;

  void read_more();
  void take(std::string_view bytes);
  void end_of_stream();
  void close();
  void write_more();
  void drop_input();
  void ask_how_it_ended(int attempt);
  void judge(int attempt, const expected<socket_answer>& answer);
  void report(std::int32_t exit_code, std::int32_t signal);

  io_thread& io_;
  stream_request request_;
  boost::asio::local::stream_protocol::socket socket_;
  boost::asio::steady_timer timer_;
  boost::beast::flat_buffer early_; ///< what came with the answer to `attach`
  stream_demultiplexer demultiplexer_;
  child_events to_;
  /// Either stream may come next: as much is read as both allow.
  std::uint64_t out_credit_ = 0;
  std::uint64_t err_credit_ = 0;
  bool reading_ = false;
  bool muted_ = false;
  bool ended_ = false;
  bool reported_ = false;
  std::deque<std::string> queue_;
  bool writing_ = false;
  bool closing_input_ = false;
  bool input_closed_ = false;
};

} // namespace bulkhead::io
