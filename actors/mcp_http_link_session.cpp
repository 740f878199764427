#include "actors/mcp_http_link.hpp"

#include <algorithm>
#include <utility>

#include <caf/all.hpp>
#include <fmt/format.h>

#include "protocol/http_redirect.hpp"
#include "protocol/mcp_client_protocol.hpp"

/// Sessions that end and are made again, streams that break and are resumed.
namespace bulkhead {

using namespace std::chrono_literals;

namespace {

/// Until a broken stream is asked for again, unless the server says otherwise.
constexpr std::chrono::milliseconds resume_pause = 100ms;
constexpr std::chrono::milliseconds listen_pause = 3s;

/// Attempts in a row that bring nothing.
constexpr std::uint32_t most_attempts = 5;

/// Also a server that asks to wait longer is asked by then, while somebody waits for an answer.
constexpr std::chrono::milliseconds shortest_pause = 100ms; ///< whatever the server asks for
constexpr std::chrono::milliseconds longest_pause = 60s;

constexpr auto renewal_time = 30s;

} // namespace

/// What only the link needs of an answer to the client.
void mcp_http_link_state::learn(const rpc_message& response, const std::string& method) {
  if (response.result.empty()) {
    return;
  }
  if (method == "initialize") {
    met = true;
    revision = upstream::agreed_revision(response.result);
  } else if (method == "server/discover" && upstream::announces_tool_changes(response.result)) {
    listen();
  }
}

/// The server doesn't know the session any more, so it didn't do what it was asked: once there is
/// another session, it is asked once more.
void mcp_http_link_state::session_lost(exchange refused) {
  auto again = std::move(refused.sent);
  if (again.tries > 1) {
    refuse(again.id, {errc::server_failed, "it ended the session twice in a row"});
    return;
  }
  ++again.tries;
  if (again.id == 0 || awaited.contains(again.id)) {
    queue.push_front(std::move(again));
  }
  if (step != session_step::none) {
    return;
  }
  if (goes == way::events) {
    // A stream is a session; the next stream gets what is in the queue.
    if (event_stream) {
      drop(*std::exchange(event_stream, std::nullopt));
    }
    endpoint.reset();
    for (const auto& [id, method] : std::map{awaited}) {
      if (std::none_of(queue.begin(), queue.end(),
                       [&](const auto& each) { return each.id == id; })) {
        refuse(id, {errc::server_failed, fmt::format("its session ended; {}", not_repeated)});
      }
    }
    pump();
  } else if (refused.session == session) {
    env->log->info("MCP server \"{}\": its session ended and is made again", entry.name);
    renew();
  } else {
    pump();
  }
}

void mcp_http_link_state::renew() {
  step = session_step::initializing;
  session.clear();
  if (listening) {
    drop(*std::exchange(listening, std::nullopt));
  }
  heard_id.clear();
  message first;
  first.line = initialize;
  first.method = "initialize";
  first.id = initialize_id;
  first.renews = true;
  first.memory = std::make_shared<memory_budget::share>();
  awaited.emplace(first.id, first.method);
  send(std::move(first));
  after(renewal_time, [this, id = initialize_id] {
    if (step == session_step::initializing && awaited.contains(id)) {
      renewal_failed({errc::timeout, "no answer"});
    }
  });
}

void mcp_http_link_state::renewed(const rpc_message& response) {
  awaited.erase(initialize_id);
  if (response.result.empty()) {
    auto why = upstream::read_failure(response.error);
    renewal_failed({errc::server_failed, fmt::format("{} {}", why.code, why.message)});
    return;
  }
  revision = upstream::agreed_revision(response.result);
  step = session_step::announcing;
  message second;
  second.line = initialized;
  second.method = "notifications/initialized";
  second.memory = std::make_shared<memory_budget::share>();
  send(std::move(second));
  // It may be another server by now.
  deliver(encode_notification("notifications/tools/list_changed", {}));
}

/// The client has to begin afresh.
void mcp_http_link_state::renewal_failed(const error& reason) {
  awaited.erase(initialize_id);
  refuse_all({errc::server_failed,
              fmt::format("its session ended, and it refused another: {}", reason.message)});
  end_child();
}

/// The server has taken notifications/initialized, or won't.
void mcp_http_link_state::announced() {
  step = session_step::none;
  if (goes == way::post) {
    listen();
  }
  pump();
}

/// The stream of an answer broke: the rest is asked for (2025-11-25, "Resumability and
/// Redelivery").
void mcp_http_link_state::resume(exchange broken, const error& reason) {
  if (broken.attempts >= most_attempts) {
    refuse(
        broken.sent.id,
        {errc::server_failed,
         fmt::format("its answer broke off, and {} attempts to get the rest brought nothing{}{}; "
                     "{}",
                     broken.attempts, reason.message.empty() ? "" : ": ", reason.message,
                     not_repeated)});
    return;
  }
  auto pause = std::clamp<std::chrono::milliseconds>(
      broken.events->retry().value_or(resume_pause * (1 << broken.attempts)), shortest_pause,
      longest_pause);
  auto kept = std::make_shared<exchange>(std::move(broken));
  after(pause, [this, kept] {
    if (!awaited.contains(kept->sent.id) || closing) {
      return;
    }
    exchange next;
    next.what = role::resume;
    next.sent.id = kept->sent.id;
    next.sent.method = kept->sent.method;
    next.attempts = kept->attempts + 1;
    auto request = get_request();
    request.headers.push_back({"Last-Event-ID", kept->events->last_id()});
    // Should it bring nothing, the position stays.
    next.events.emplace(std::move(*kept->events));
    open(env->next_serial(), std::move(request), std::move(next));
  });
}

http_request mcp_http_link_state::get_request() const {
  http_request request;
  request.url = url->text();
  request.headers = headers_for({});
  request.headers.push_back({"Accept", "text/event-stream"});
  return request;
}

/// Opens the stream of what the server says by itself; a server needn't have one.
void mcp_http_link_state::listen() {
  if (listening || closing || !child) {
    return;
  }
  auto id = env->next_serial();
  exchange made;
  made.what = role::listen;
  http_request request = get_request();
  if (revision.empty()) {
    request.method = "POST";
    message what;
    what.modern = true;
    what.headers = {{"Mcp-Method", "subscriptions/listen"}};
    request.headers = headers_for(what);
    request.headers.push_back({"Content-Type", "application/json"});
    request.headers.push_back({"Accept", "application/json, text/event-stream"});
    request.body = upstream::encode_listen(meta);
  } else if (!heard_id.empty()) {
    request.headers.push_back({"Last-Event-ID", heard_id});
  }
  listening = id;
  open(id, std::move(request), std::move(made));
}

void mcp_http_link_state::listen_again(const exchange& ended) {
  // 405 and the like: it has none. What was heard of it is a stream that works.
  if (ended.status >= 300 || (ended.status != 0 && !ended.events) || closing) {
    return;
  }
  deaf = ended.heard ? 0 : deaf + 1;
  if (deaf >= most_attempts) {
    return;
  }
  auto pause = std::max(ended.events ? ended.events->retry().value_or(listen_pause) : listen_pause,
                        listen_pause / 10);
  after(pause, [this, of = session] {
    if (of == session && step == session_step::none) {
      listen();
    }
  });
}

/// Opens the one stream of a server of 2024-11-05.
void mcp_http_link_state::open_events() {
  if (event_stream || !child) {
    return;
  }
  auto id = env->next_serial();
  exchange made;
  made.what = role::events;
  event_stream = id;
  open(id, get_request(), std::move(made));
}

void mcp_http_link_state::take_endpoint(std::string_view reference) {
  auto where = resolve_reference(*url, reference, "the endpoint");
  if (where && where->origin() != url->origin()) {
    where = fail(errc::denied,
                 fmt::format("it wants its messages sent to {}, another server", where->origin()));
  }
  if (!where) {
    refuse_all(where.error());
    drop(*std::exchange(event_stream, std::nullopt));
    return;
  }
  endpoint = std::move(*where);
  if (met) {
    // A stream is a session.
    renew();
  } else {
    pump();
  }
}

void mcp_http_link_state::events_ended(const exchange& ended, const error& reason) {
  bool worked = endpoint.has_value();
  event_stream.reset();
  endpoint.reset();
  auto how = reason.code != errc::none
                 ? reason.message
                 : upstream::describe_status(ended.status, ended.kind, ended.body);
  if (ended.status == 401 || ended.status == 403) {
    auto carried = ended.token;
    for (auto& each : std::exchange(queue, {})) {
      exchange refused;
      refused.what = role::events;
      refused.status = ended.status;
      refused.challenge = ended.challenge;
      refused.token = std::exchange(carried, {}); // it is refused once, whoever waited
      refused.sent.id = each.id;
      refuse_access(std::move(refused));
    }
    return;
  }
  if (step != session_step::none) {
    renewal_failed({errc::server_failed, how});
    return;
  }
  if (!worked && !met && entry.transport == server_transport::http) {
    goes = way::post;
    how = fmt::format("it speaks neither Streamable HTTP nor HTTP with server-sent events; to GET "
                      "it answered {}",
                      how);
  }
  refuse_all({errc::server_failed,
              worked ? fmt::format("the stream of its answers ended ({}); calls may have been "
                                   "carried out, so they aren't repeated",
                                   how)
                     : how});
}

} // namespace bulkhead
