#pragma once

#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include "actors/http_transport.hpp"

namespace bulkhead {

/// All that one principal asks in the modern era over HTTP, whatever the number of its programs and
/// connections: to the `mcp_session`, which keeps what outlives a request, they are one client, so
/// each request gets an id that is unique there. A client that closes its stream cancels its
/// request.
struct http_stateless_state : http_transport_state {
  explicit http_stateless_state(http_transport_actor::pointer self);
  http_transport_actor::behavior_type make_behavior();

  struct call {
    std::string id; ///< that the client gave, JSON text
    io::http_reply_ptr reply;
    bool streaming = false; ///< else it may yet become a plain answer
    std::chrono::steady_clock::time_point since;
  };

  void take(http_arrival& arrival);
  void message_for(const std::string& request, const std::string& message);
  void begin(call& which);
  void finish(std::map<std::uint64_t, call>::iterator which, const std::string& message);
  void client_gone(std::uint64_t serial);
  void session_lost();
  void tick();
  void stop();
  void end();

  std::map<std::uint64_t, call> calls; ///< by the id that the session knows

  static inline const char* name = "http_stateless";
};

http_transport_actor::behavior_type
http_stateless(http_transport_actor::stateful_pointer<http_stateless_state> self,
               http_transport_context context);

} // namespace bulkhead
