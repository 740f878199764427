#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <caf/typed_response_promise.hpp>

#include "actors/http_reader.hpp"
#include "actors/http_transport.hpp"

namespace bulkhead {

/// All clients of one listener.
using http_front_end_actor = caf::typed_actor<
    /// A request came (the I/O thread sends this).
    caf::reacts_to<http_arrival>,
    /// A POST whose body was read (the principal's reader sends this).
    caf::reacts_to<message_atom, http_arrival>,
    /// A session is of no use any more, by its id; it is stopped.
    caf::reacts_to<end_atom, std::string>,
    /// That principal isn't served any more: all that it has here is stopped.
    caf::reacts_to<stop_atom, std::string>,
    /// Takes no more requests and ends all sessions; answers when they have ended.
    caf::replies_to<stop_atom>::with<caf::ok_atom>>;

/// Why a request comes too soon, and when it may come again.
struct too_soon {
  std::string why; ///< a sentence without its full stop
  std::chrono::seconds again{1};
};

/// What a front end is made of. Its functions are called from the front end alone, but for
/// `mirrored`: from readers.
struct http_front_end_context {
  environment_ptr env;
  /// What a principal's sessions talk to; nothing if it is served no more.
  std::function<std::optional<session_context>(const std::string& principal)> session_of;
  http_allowance allowance;
  mirrored_parameters mirrored{}; ///< null: no tool has any
  /// Counts a request of a principal, and may put it off. Null: none is.
  std::function<std::optional<too_soon>(const std::string& principal)> count_request{};
  /// May put off a call of a tool, which would only wait to be refused. Null: none is.
  std::function<std::optional<too_soon>(const std::string& principal)> put_off_call{};
};

/// Tells the eras and the sessions apart, and hands each request to its client's actor. Bodies are
/// looked at by a reader of their principal's, so that nobody waits for another's.
struct http_front_end_state {
  explicit http_front_end_state(http_front_end_actor::pointer self);
  http_front_end_actor::behavior_type make_behavior();

  struct client {
    http_transport_actor actor;
    std::string principal;
    std::shared_ptr<http_load> load;
    std::chrono::steady_clock::time_point last_used;
  };

  void take(http_arrival& arrival);
  void have_read(http_arrival& arrival);
  void take_read(http_arrival& arrival);
  bool put_off(http_arrival& arrival, const std::optional<too_soon>& reason);
  void take_modern(http_arrival& arrival);
  void take_legacy(http_arrival& arrival);
  void open_session(http_arrival& arrival);
  bool make_room(const std::string& principal);
  void end_session(const std::string& id);
  void stop_principal(const std::string& principal);
  void stop_client(const http_transport_actor& which);
  void died(const caf::down_msg& down);
  caf::result<caf::ok_atom> stop();
  void answer_if_stopped();

  http_front_end_actor::pointer self;
  http_front_end_context context;
  std::map<std::string, client> sessions;              ///< by id
  std::map<std::string, http_transport_actor> modern;  ///< by principal
  std::map<std::string, http_reader_actor> readers;    ///< by principal
  std::map<caf::actor_addr, http_transport_actor> all; ///< also those that are ending
  bool is_stopping = false;
  std::vector<caf::typed_response_promise<caf::ok_atom>> stopping;

  static inline const char* name = "http_front_end";
};

http_front_end_actor::behavior_type
http_front_end(http_front_end_actor::stateful_pointer<http_front_end_state> self,
               http_front_end_context context);

/// What a listener calls with each request, for a front end.
std::function<void(incoming_request, memory_budget::share, io::http_reply_ptr)>
http_requests_to(const http_front_end_actor& to);

} // namespace bulkhead
