#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "actors/io/http_reply.hpp"
#include "actors/io/io_thread.hpp"
#include "actors/io/tls_context.hpp"
#include "actors/memory_budget.hpp"
#include "protocol/error.hpp"
#include "protocol/http_rules.hpp"
#include "protocol/limits.hpp"

namespace bulkhead::io {

/// What a client may cost before it is refused or given up.
struct http_bounds {
  std::size_t connections = 512;
  /// Of one address (of IPv6: its first 64 bits, which one client has for itself).
  std::size_t connections_per_address = 256;
  /// On which one principal's requests come or are answered: many streams, and yet no more than
  /// leaves enough for others.
  std::size_t connections_per_principal = 128;
  /// Are loopback's addresses held to it, too? A proxy on this machine, through which all come, has
  /// one of them.
  bool counts_loopback = false;
  std::size_t request_line = 8 * kibibyte;
  std::size_t header = 16 * kibibyte; ///< bytes of a request's header, and of a chunked body's
                                      ///< trailer
  std::size_t fields = 100;           ///< lines of a header
  std::size_t body = limits{}.line;
  /// Bytes that wait for a client; one that lets more pile up is given up.
  std::size_t write_ahead = 4 * mebibyte;

  std::chrono::milliseconds handshake_time{10'000}; ///< for TLS to be agreed on
  std::chrono::milliseconds idle_time{60'000};      ///< between two requests
  std::chrono::milliseconds header_time{10'000};    ///< for a header, from its first byte
  std::chrono::milliseconds dawdle_time{1'000};     ///< for a header or the keys, where others want
                                                    ///< the room
  std::chrono::milliseconds body_time{
      20'000};                           ///< for a body, and a second more for each that came…
  std::size_t body_rate = 32 * kibibyte; ///< … of this many bytes
  std::chrono::milliseconds write_time{30'000}; ///< within which a client takes at least something
  std::chrono::milliseconds token_time{10'000}; ///< between two looks at the tokens of open streams
};

struct http_listener_options {
  std::string address = "127.0.0.1"; ///< numeric, IPv4 or IPv6
  std::uint16_t port = 0;            ///< 0: one that is free
  /// A socket that somebody else has bound, and listens on, in place of both (socket activation).
  /// It is the listener's from then on, also if that can't be opened.
  std::optional<int> adopted;
  std::optional<tls_files> tls; ///< nothing: in the clear
  http_rules rules;
  http_bounds bounds;
  /// Told the status of each answer as it begins, on the I/O thread. Null: nobody is.
  std::function<void(std::uint32_t status)> answered{};
  std::shared_ptr<memory_budget> budget; ///< for bodies that come and answers that wait
  /// What a principal's bodies and answers are taken from in place of that; called on the I/O
  /// thread. Null, or answering null: from that.
  std::function<std::shared_ptr<memory_budget>(const std::string& principal)> budget_of;
};

/// A request that came whole and passed `check_head`, for MCP or one of the rules' pages: its
/// target tells. A HEAD comes as a GET. The share is for its body.
using http_request_handler =
    std::function<void(incoming_request request, memory_budget::share held, http_reply_ptr reply)>;

/// Accepts connections and takes requests from them, one at a time on each, in order. Whatever is
/// wrong with one concerns its client alone. Lives as long as its connections.
class http_listener {
public:
  virtual ~http_listener() = default;

  /// Listens at once; `handle` is called on the I/O thread. Reads the files of TLS, if any. Errors:
  /// invalid_argument (the address, the adopted socket, the certificate), unavailable (the port is
  /// taken, …).
  static expected<std::shared_ptr<http_listener>> open(io_thread& io, http_listener_options options,
                                                       http_request_handler handle);

  virtual std::uint16_t port() const = 0;

  /// Reads the certificate and its key anew, for connections that are yet to come. Blocks on the
  /// files; thread-safe. On an error (see `make_tls_context`) all stays as it was.
  virtual expected<void> set_tls(const tls_files& files) = 0;

  /// Other tokens count from now on: streams whose token isn't valid any more are ended, soon after
  /// whoever is told of it otherwise. So are those whose token expires meanwhile, without being
  /// asked, within `http_bounds::token_time`. Thread-safe.
  virtual void tokens_changed() = 0;

  /// Stops accepting, closes connections that wait for a request, refuses requests that are coming,
  /// and lets the exchanges that are under way end, but for no longer than `grace`: what is left
  /// then is cut. Asked again, the sooner end counts. Thread-safe; `done`, if given, is called on
  /// the I/O thread when none is left, and the handler is gone.
  virtual void close(std::chrono::milliseconds grace, std::function<void()> done) = 0;
};

/// Closes it and waits until that is done: its handler, and what that holds, is gone then. Not for
/// the I/O thread, nor for an actor's.
void close_and_wait(http_listener& which, std::chrono::milliseconds grace);

} // namespace bulkhead::io
