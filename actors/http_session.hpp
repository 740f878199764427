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

/// One session of the legacy era over HTTP. Each request has a stream for its answer, and one more
/// stream is for what belongs to no request. Streams outlive their readers: who lost one comes back
/// with the id of the last event that arrived, and a disconnect cancels nothing.
struct http_session_state : http_transport_state {
  explicit http_session_state(http_transport_actor::pointer self);
  http_transport_actor::behavior_type make_behavior();

  struct kept_event {
    std::uint64_t number = 0;
    std::string text;
    memory_budget::share held;
  };

  /// What is said about one request, or about none.
  struct stream {
    /// Undecided streams may yet become a plain answer.
    enum class stage : std::uint8_t { undecided, streaming, over };

    std::uint64_t number = 0;
    std::string request; ///< JSON id; empty: what belongs to no request
    stage now = stage::undecided;
    bool initializes = false;
    bool primed = false;      ///< begins with an event without data; older clients can't read it
    io::http_reply_ptr to;    ///< who reads it; null: nobody now
    std::uint64_t reader = 0; ///< counts them
    std::uint64_t last_event = 0;
    std::uint64_t last_given = 0; ///< the last event that a reader was given
    std::deque<kept_event> kept;
    std::chrono::steady_clock::time_point since;
  };

  // Requests (http_session.cpp).
  void take(http_arrival& arrival);
  void take_post(http_arrival& arrival);
  void take_request(http_arrival& arrival);
  void take_get(http_arrival& arrival);
  void resume(http_arrival& arrival, std::string_view last_event);
  void forward(http_arrival& arrival);
  void note_cancelled(const std::string& body);

  // Streams (http_session_streams.cpp).
  void read_by(stream& which, io::http_reply_ptr reply);
  void begin(stream& which);
  void give(stream& which, std::uint64_t after);
  void say(stream& which, std::string_view message);
  void keep(stream& which, kept_event event);
  void finish(stream& which, const std::string& message);
  void close(stream& which);
  void let_go(std::uint64_t number, std::uint64_t reader);
  void message_for(const std::string& request, const std::string& message);
  void break_off(const std::string& request);
  void drop_old_streams();
  void erase(std::uint64_t number);

  void tick();
  void stop();
  void end();
  outgoing_answer ended(std::string_view request) const;
  void session_lost();

  std::map<std::uint64_t, stream> streams; ///< 0: what belongs to no request
  std::map<std::string, std::uint64_t, std::less<>> by_request;
  std::uint64_t last_stream = 0;
  std::size_t kept_bytes = 0;
  std::chrono::steady_clock::time_point last_used;
  std::function<void(std::string id)> idle; ///< the session is of no use any more

  static inline const char* name = "http_session";
};

/// `idle` is told when nobody has used the session for long, or it can't go on; it still has to be
/// stopped.
http_transport_actor::behavior_type
http_session(http_transport_actor::stateful_pointer<http_session_state> self,
             http_transport_context context, std::function<void(std::string id)> idle);

} // namespace bulkhead
