#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <caf/typed_event_based_actor.hpp>
#include <caf/typed_response_promise.hpp>

#include "actors/interfaces.hpp"
#include "actors/io/http_reply.hpp"
#include "actors/mcp_session.hpp"
#include "actors/process_host.hpp"
#include "protocol/http_mcp.hpp"

namespace bulkhead {

/// A request that came over HTTP, on its way to who answers it.
struct http_arrival {
  incoming_request request;
  posted_message posted;                      ///< of a POST
  std::shared_ptr<memory_budget::share> held; ///< for the body
  io::http_reply_ptr reply;
};

/// What the clients of one listener may cost together and each.
struct http_allowance {
  std::size_t sessions = 64;          ///< of one principal, in the legacy era
  std::size_t in_flight = 64;         ///< requests of one session
  std::size_t modern_in_flight = 256; ///< requests of one principal
  /// What is kept of a session's streams so that its client can come back for it, in bytes, and how
  /// many streams that are over.
  std::size_t replay = 4 * mebibyte;
  std::size_t streams = 64;
  std::chrono::seconds replay_time{300};   ///< for a stream that is over
  std::chrono::seconds session_idle{1800}; ///< of a session that nobody uses
  std::chrono::seconds keep_alive{15};     ///< between two signs of life on a silent stream
  std::uint32_t retry_ms = 1000; ///< after which a client whose stream was closed comes back
};

/// How busy a client's session is; written by the session, read by who may have to end one.
struct http_load {
  std::atomic<std::size_t> requests = 0;
};

/// What a client's actor is made of.
struct http_transport_context {
  session_context session;
  http_allowance allowance;
  std::string id; ///< of a session of the legacy era
  std::shared_ptr<http_load> load = std::make_shared<http_load>();
};

/// The actor of one client's session, or of all that one principal asks in the modern era: the
/// transport side of an `mcp_session` over HTTP.
using http_transport_actor = front_end_actor::extend<
    /// A request of the client.
    caf::reacts_to<http_arrival>,
    /// The client that was to read an answer is gone: the number of the answer, and of the reader
    /// (the I/O thread sends this).
    caf::reacts_to<end_atom, std::uint64_t, std::uint64_t>,
    /// The client is to come back for the rest of what is said about that request of its (JSON
    /// text), where the era knows a way back.
    caf::reacts_to<interrupt_atom, std::string>,
    /// A timer.
    caf::reacts_to<tick_atom>>;

/// What the transports of both eras have alike: the session that they carry, and its end.
struct http_transport_state {
  explicit http_transport_state(http_transport_actor::pointer self) : self{self} {}

  enum class phase : std::uint8_t { open, stopping, ended };

  /// However the actor ends, nothing that it began goes on.
  void begin_session(http_transport_context made);
  /// The session has dealt with what was forwarded first.
  void taken();
  /// Has the session stopped, once; `then` follows in any case.
  void stop_session(std::function<void()> then);
  /// Whoever waits for the end learns of it.
  void confirm_end();

  http_transport_actor::pointer self;
  http_transport_context context;
  mcp_session_actor session;
  phase now = phase::open;
  /// By the server, rather than by the client, or because nobody used it.
  bool is_stopped = false;
  std::deque<std::shared_ptr<memory_budget::share>> forwarded; ///< that the session has yet to take
  std::vector<caf::typed_response_promise<caf::ok_atom>> stopping;
};

/// The answer to a request that comes, or waits, while the server stops or lets a tenant go.
outgoing_answer no_longer_served(std::string_view id);
std::string_view why_no_longer_served();

/// The answer to a request with that error, or result, as a whole: with the status and the time to
/// wait that go with it.
outgoing_answer answer_with_message(std::string message, std::uint32_t status);

} // namespace bulkhead

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(bulkhead::http_arrival)
CAF_BEGIN_TYPE_ID_BLOCK(bulkhead_http, caf::id_block::bulkhead_process_host::end)
CAF_ADD_TYPE_ID(bulkhead_http, (bulkhead::http_arrival))
CAF_END_TYPE_ID_BLOCK(bulkhead_http)
