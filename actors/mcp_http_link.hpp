#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include "actors/environment.hpp"
#include "actors/interfaces.hpp"
#include "actors/mcp_client.hpp"
#include "protocol/mcp_http.hpp"
#include "protocol/mcp_http_headers.hpp"
#include "protocol/sse_reader.hpp"
#include "protocol/web_url.hpp"

namespace bulkhead {

/// The link with its own timers.
using mcp_http_link_actor = child_host_actor::extend_with<http_owner_actor>::extend<
    /// What was put off under that number is due.
    caf::reacts_to<tick_atom, std::uint64_t>>;

/// What a link needs besides its server's entry. The functions give the services as they are now.
struct mcp_http_services {
  std::function<http_host_actor()> http;
  std::function<credential_store_actor()> credentials; ///< may give null
};

/// Ends the text about a call that a server may have carried out.
inline constexpr const char* not_repeated =
    "the call may have been carried out, so it isn't repeated";

/// An MCP server over HTTP, made a child like any other for its client: the client's lines become
/// POST requests, and what the server sends becomes lines. The link knows what only HTTP has:
/// sessions, streams that break and are resumed, headers, credentials. One client at a time.
struct mcp_http_link_state {
  explicit mcp_http_link_state(mcp_http_link_actor::pointer self);
  mcp_http_link_actor::behavior_type make_behavior();

  enum class way : std::uint8_t {
    post,   ///< Streamable HTTP
    events, ///< 2024-11-05: answers come on one stream
  };

  /// How far the making of a session stands, first or again.
  enum class session_step : std::uint8_t {
    none,         ///< nothing is in the way of messages
    initializing, ///< the link itself has asked again
    announcing,   ///< notifications/initialized is on its way
  };

  /// A message of the client's, kept until the server has it.
  struct message {
    std::string line;
    std::string method;
    std::uint64_t id = 0; ///< 0: no request
    bool modern = false;
    bool renews = false; ///< it is the link's own, to make the session again
    std::uint32_t tries = 0;
    std::optional<error> refusal; ///< of it without a token; holds if there is none now either
    std::vector<std::pair<std::string, std::string>> headers; ///< of its own
    std::shared_ptr<memory_budget::share> memory;
  };

  /// What an exchange is for.
  enum class role : std::uint8_t {
    post,    ///< a message, and its answer
    resume,  ///< the rest of an answer whose stream broke
    listen,  ///< what the server says by itself
    events,  ///< all that the server says (2024-11-05)
    goodbye, ///< the session's end
  };

  struct exchange {
    role what = role::post;
    message sent;
    std::string token;   ///< that it carries
    std::string session; ///< likewise
    std::uint32_t status = 0;
    upstream::body_kind kind = upstream::body_kind::none;
    std::string challenge; ///< WWW-Authenticate
    std::string body;
    std::optional<sse_reader> events;
    bool answered = false;
    bool heard = false;         ///< an event has come
    std::uint32_t attempts = 0; ///< to resume, in a row, that brought nothing
    std::uint64_t owed = 0;     ///< credit
    memory_budget::share memory;
  };

  // The child that the client sees (mcp_http_link.cpp).
  caf::result<child_started> spawn(const child_owner_actor& of);
  void close_input();
  void end_child();
  void take_credit(std::uint64_t bytes);
  void deliver(std::string line);
  void refuse(std::uint64_t id, error reason);
  void refuse_all(const error& reason);
  void after(std::chrono::milliseconds time, std::function<void()> then);
  scan_limits scan_bounds() const;

  // What the client says (mcp_http_link_send.cpp).
  void write(std::string line);
  void cancel_request(std::uint64_t id);
  void pump();
  bool ready_to_send();
  void ask_for_token();
  bool uses_token() const;
  bool names_credentials() const;
  void send(message what);
  std::vector<http_header> headers_for(const message& what) const;
  void open(exchange_id id, http_request request, exchange what);
  void drop(exchange_id id);

  // What the server says (mcp_http_link_answers.cpp).
  void take_head(const http_head& head);
  void take_body(const http_body& body);
  void take_end(const http_end& end);
  void finish(exchange_id id, exchange done, const error& reason);
  void take_event(exchange_id id, const sse_event& event);
  void overlong(exchange_id id);
  void take_text(exchange_id id, std::string_view text);
  void take_response(const rpc_message& response, std::string_view text);
  void take_page(const rpc_message& response);
  void conclude_post(exchange done, const error& reason);

  // Refusals (mcp_http_link_failures.cpp).
  void conclude_failure(exchange done);
  void refuse_access(exchange done);

  // Sessions and streams (mcp_http_link_session.cpp).
  void learn(const rpc_message& response, const std::string& method);
  void session_lost(exchange refused);
  void renew();
  void renewed(const rpc_message& response);
  void renewal_failed(const error& reason);
  void announced();
  void resume(exchange broken, const error& reason);
  void listen();
  void listen_again(const exchange& ended);
  void open_events();
  void take_endpoint(std::string_view reference);
  void events_ended(const exchange& ended, const error& reason);
  http_request get_request() const;

  mcp_http_link_actor::pointer self;
  environment_ptr env;
  mcp_http_services services;
  server_entry entry;
  std::optional<web_url> url;
  http_host_actor http; ///< the one that is watched

  // The child.
  child_id last_child = 0;
  std::optional<child_id> child;
  caf::actor_addr owner;
  std::uint64_t outstanding = 0; ///< bytes of lines that the client hasn't dealt with
  bool closing = false;

  // The connection.
  way goes = way::post;
  session_step step = session_step::none;
  bool met = false; ///< the handshake was answered once
  std::string session;
  std::string revision;
  std::string initialize; ///< the client's, for the session's renewal
  std::string initialized;
  std::uint64_t initialize_id = 0;
  std::string meta; ///< of the client's server/discover
  std::optional<web_url> endpoint;
  std::optional<exchange_id> event_stream;
  std::optional<exchange_id> listening;
  std::uint32_t deaf = 0; ///< listening streams in a row that brought nothing
  std::string heard_id;   ///< position of the listening stream
  std::string token;
  bool token_known = false;
  bool token_asked = false;

  std::deque<message> queue;
  std::map<exchange_id, exchange> exchanges;
  std::map<std::uint64_t, std::string> awaited; ///< methods of requests without an answer
  std::map<std::string, std::vector<upstream::param_header>> tool_headers;
  std::map<std::uint64_t, std::function<void()>> put_off;
  std::uint64_t last_put_off = 0;

  static inline const char* name = "mcp-http-link";
};

mcp_http_link_actor::behavior_type
mcp_http_link(mcp_http_link_actor::stateful_pointer<mcp_http_link_state> self, environment_ptr env,
              mcp_http_services services, server_entry entry);

/// The client of a server over HTTP: an `mcp_client` whose child is a link of its own.
mcp_client_impl_actor::behavior_type
mcp_http_client(mcp_client_impl_actor::stateful_pointer<mcp_client_state> self, environment_ptr env,
                mcp_http_services services, server_entry entry);

} // namespace bulkhead
