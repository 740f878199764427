#pragma once

#include <functional>
#include <memory>

#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/tcp.hpp>

#include "actors/io/tls_context.hpp"

namespace bulkhead::io {

/// The bytes of one client's connection, in the clear or within TLS. On the I/O thread; whoever
/// asks keeps it alive until it is told. One read and one write at a time.
class http_stream {
public:
  using socket = boost::asio::ip::tcp::socket;
  using failure = boost::system::error_code;
  using transferred = std::function<void(const failure&, std::size_t)>;

  virtual ~http_stream() = default;

  /// Agrees with the client on keys, where there are any; before anything else.
  virtual void start(std::function<void(const failure&)> told) = 0;

  /// Reads what comes next, at least a byte. A client that closes its side is a failure.
  virtual void read(boost::asio::mutable_buffer into, transferred told) = 0;
  /// Writes some of it, at least a byte.
  virtual void write(boost::asio::const_buffer from, transferred told) = 0;

  /// Tells the client that no more will come, when all is written; reads go on. `owner` is held
  /// until that is done.
  virtual void end_writing(std::shared_ptr<void> owner) = 0;

  /// Has anything come that wasn't read yet?
  bool has_unread();

  /// At once; who waits is told of an abort.
  void close();

  socket::executor_type executor() { return socket_.get_executor(); }

protected:
  explicit http_stream(socket connected);

  socket socket_;
};

/// A stream over a socket that a client has connected; null `keys`: in the clear.
std::unique_ptr<http_stream> make_http_stream(boost::asio::ip::tcp::socket connected,
                                              const tls_context_ptr& keys);

} // namespace bulkhead::io
