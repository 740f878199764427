#pragma once

#include <functional>
#include <string>
#include <vector>

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <caf/typed_response_promise.hpp>

#include "actors/interfaces.hpp"
#include "actors/mcp_session.hpp"

namespace bulkhead {

namespace io {
class io_thread;
}

/// The byte side of a connection: lines come as `line_atom` and `input_end_atom` to the front end
/// that it was opened for, lines go out by `write`.
struct line_transport {
  std::function<void(std::string line)> write;
  /// Lines of that many bytes, their ends included, have been dealt with.
  std::function<void(std::size_t bytes)> taken;
  /// Calls back, on any thread, once all written so far is out or can't be.
  std::function<void(std::function<void()> done)> when_drained;
  std::function<void()> close;
};

/// Opens a transport for a front end and starts it.
using transport_opener = std::function<line_transport(front_end_actor)>;

/// A transport over two descriptors, which it takes over; see io::stdio_channel.
transport_opener stdio_transport(io::io_thread& io, int in, int out, const limits& bounds);

/// The front end with the timer it sends itself.
using stdio_front_end_actor = front_end_actor::extend<caf::reacts_to<tick_atom>>;

/// One client on stdio: passes lines between transport and session. When the client closes its end
/// or the session is lost, what is written goes out and the front end ends; so whoever monitors it
/// knows that this client is done.
struct stdio_front_end_state {
  explicit stdio_front_end_state(stdio_front_end_actor::pointer self);
  stdio_front_end_actor::behavior_type make_behavior();

  enum class phase : std::uint8_t { open, stopping, flushing, ended };

  void stop();
  void flush();
  void end();

  stdio_front_end_actor::pointer self;
  environment_ptr env;
  line_transport transport;
  mcp_session_actor session;
  phase now = phase::open;
  std::vector<caf::typed_response_promise<caf::ok_atom>> stopping;

  static inline const char* name = "stdio_front_end";
};

stdio_front_end_actor::behavior_type
stdio_front_end(stdio_front_end_actor::stateful_pointer<stdio_front_end_state> self,
                session_context context, const transport_opener& open);

} // namespace bulkhead
