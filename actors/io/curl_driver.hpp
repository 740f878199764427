#pragma once

#include <functional>
#include <memory>

#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <curl/curl.h>

#include "actors/io/io_thread.hpp"

namespace bulkhead::io {

/// libcurl's multi interface on the I/O thread: waits for its sockets and its timer, and tells when
/// a transfer is over. Lives on that thread. libcurl's sockets are gathered in an epoll instance of
/// their own, so that a socket that libcurl closes is nobody else's business.
class curl_driver : public std::enable_shared_from_this<curl_driver> {
public:
  /// `over` is called for each transfer that ended by itself, after it was removed; never from
  /// within `add` or `remove`. Throws std::runtime_error when the system has no descriptors left.
  static std::shared_ptr<curl_driver> make(io_thread& io,
                                           std::function<void(CURL*, CURLcode)> over);
  ~curl_driver();
  curl_driver(const curl_driver&) = delete;
  curl_driver& operator=(const curl_driver&) = delete;

  /// The transfer begins soon. False when libcurl doesn't take it.
  bool add(CURL* transfer);
  void remove(CURL* transfer);

private:
  curl_driver(io_thread& io, std::function<void(CURL*, CURLcode)> over);
  static int socket_changed(CURL*, curl_socket_t socket, int what, void* self, void*);
  static int timer_changed(CURLM*, long milliseconds, void* self);
  void wait();
  void sockets_ready();
  void act(curl_socket_t socket, int events);
  void report();

  CURLM* multi_;
  boost::asio::posix::stream_descriptor epoll_;
  boost::asio::steady_timer timer_;
  std::function<void(CURL*, CURLcode)> over_;
};

} // namespace bulkhead::io
