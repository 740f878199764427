#include "actors/mcp_http_link.hpp"

#include <utility>

#include <caf/all.hpp>
#include <fmt/format.h>

#include "actors/http_headers.hpp"
#include "protocol/mcp_client_protocol.hpp"
#include "protocol/upstream_text.hpp"

/// From answers to the client's lines.
namespace bulkhead {

using namespace std::chrono_literals;

namespace {

/// Of a body that is neither JSON nor events; it is for people.
constexpr std::size_t longest_page = 16 * kibibyte;

/// Events up to this aren't worth charging.
constexpr std::size_t free_partial = 64 * kibibyte;

/// A stream that has brought its answer has no reason to live on.
constexpr auto linger_time = 5s;

bool is_success(std::uint32_t status) {
  return status >= 200 && status < 300;
}

/// Session ids are visible ASCII (2025-11-25, "Session Management").
bool is_session_id(std::string_view text) {
  return text.size() <= 1024 &&
         std::all_of(text.begin(), text.end(), [](char c) { return c > 0x20 && c < 0x7f; });
}

} // namespace

void mcp_http_link_state::take_head(const http_head& head) {
  auto found = exchanges.find(head.id);
  if (found == exchanges.end()) {
    return;
  }
  auto& each = found->second;
  each.status = head.status;
  each.kind = upstream::kind_of_body(first_header(head.headers, "content-type"));
  each.challenge = joined_headers(head.headers, "www-authenticate");
  if (!is_success(head.status)) {
    return;
  }
  if (each.what == role::post) {
    // The server has it: it isn't sent again.
    std::string{}.swap(each.sent.line);
    each.sent.memory.reset();
    if (auto id = first_header(head.headers, "mcp-session-id");
        each.sent.method == "initialize" && is_session_id(id)) {
      session = std::move(id);
    }
  }
  if (each.kind == upstream::body_kind::events) {
    if (each.events) {
      each.events->restart(); // the position stays
    } else {
      each.events.emplace(env->bounds.line);
    }
  } else if (each.what == role::listen || each.what == role::events || each.what == role::resume) {
    auto over = std::move(each);
    drop(head.id);
    finish(head.id, std::move(over), {errc::none, {}});
  }
}

void mcp_http_link_state::take_body(const http_body& body) {
  auto found = exchanges.find(body.id);
  if (found == exchanges.end()) {
    return;
  }
  auto& each = found->second;
  each.owed += body.bytes.size();
  if (each.events) {
    // By its id: what an event causes may end the exchange.
    sse_reader::sink sink{[this, id = body.id](const sse_event& event) { take_event(id, event); },
                          [this, id = body.id] { overlong(id); }};
    auto reader = std::move(*each.events);
    reader.feed(body.bytes, sink);
    if (auto still = exchanges.find(body.id); still != exchanges.end()) {
      auto held = reader.held();
      auto& share = still->second.memory;
      if (held <= free_partial) {
        share.release();
      } else if (held > share.bytes() &&
                 !env->budget->take(held - share.bytes() + free_partial, share)) {
        share.release();
        reader.drop_event();
        refuse(still->second.sent.id,
               {errc::overloaded, "there is no memory for its answer now; try again later"});
      }
      still->second.events = std::move(reader);
    }
  } else {
    auto most = each.kind == upstream::body_kind::json ? env->bounds.line : longest_page;
    bool fits = each.body.size() + body.bytes.size() <= most &&
                (each.body.size() + body.bytes.size() <= free_partial ||
                 env->budget->take(body.bytes.size(), each.memory));
    if (!fits) {
      auto over = std::move(each);
      drop(body.id);
      finish(body.id, std::move(over),
             {errc::too_large,
              fmt::format("its answer is over the limit of {} bytes, or there is no memory for it "
                          "now",
                          most)});
      return;
    }
    each.body += body.bytes;
  }
  if (auto still = exchanges.find(body.id);
      still != exchanges.end() && outstanding < env->bounds.read_ahead) {
    self->send(http, credit_atom::value, body.id, std::exchange(still->second.owed, 0));
  }
}

void mcp_http_link_state::overlong(exchange_id id) {
  error reason{errc::too_large,
               fmt::format("its answer is over the limit of {} bytes an event", env->bounds.line)};
  auto found = exchanges.find(id);
  if (found == exchanges.end()) {
    return;
  }
  auto& from = found->second;
  if (from.sent.id != 0) {
    from.answered = true;
    refuse(from.sent.id, std::move(reason));
  } else if (from.what == role::events) {
    // It may have been anyone's.
    refuse_all(reason);
  }
}

void mcp_http_link_state::take_event(exchange_id id, const sse_event& event) {
  auto found = exchanges.find(id);
  if (found == exchanges.end()) {
    return; // an event before this one ended it
  }
  auto& from = found->second;
  from.heard = true;
  from.attempts = 0;
  if (from.what == role::listen && event.id) {
    heard_id = *event.id;
  }
  if (from.what == role::events && event.type == "endpoint") {
    take_endpoint(event.data);
  } else if (event.type == "message" &&
             event.data.find_first_not_of(" \t\r\n") != std::string::npos) {
    take_text(id, event.data);
  }
}

void mcp_http_link_state::take_text(exchange_id id, std::string_view text) {
  auto& from = exchanges.at(id);
  auto message = parse_rpc(text, scan_bounds());
  if (!message) {
    if (from.sent.id != 0) {
      from.answered = true;
      bool broken = message.error().code == errc::malformed;
      refuse(from.sent.id, {broken ? errc::server_failed : message.error().code,
                            fmt::format("its answer can't be read: {}", message.error().message)});
    } else {
      env->log->debug("{}: a message that can't be read: {}", entry.name, message.error().message);
    }
    return;
  }
  if (message->kind == rpc_kind::response) {
    auto of = upstream::response_id(message->id);
    if (from.sent.id != 0 && (of == from.sent.id || message->id.empty())) {
      if (!std::exchange(from.answered, true)) {
        after(linger_time, [this, id] {
          if (exchanges.contains(id)) {
            drop(id);
          }
        });
      }
      if (!of) {
        // An error that names no request is of the one that the exchange is for.
        auto line = upstream::error_line(text, from.sent.id, scan_bounds());
        if (!line.empty() && awaited.erase(from.sent.id) > 0) {
          deliver(std::move(line));
        }
        return;
      }
    }
    take_response(*message, text);
    return;
  }
  if (message->method == "notifications/subscriptions/acknowledged") {
    return;
  }
  std::string line;
  append_json_line(line, text);
  deliver(line + "\n");
}

void mcp_http_link_state::take_response(const rpc_message& response, std::string_view text) {
  auto id = upstream::response_id(response.id).value_or(0);
  if (step == session_step::initializing && id == initialize_id) {
    renewed(response);
    return;
  }
  auto waits = awaited.find(id);
  if (waits == awaited.end()) {
    return; // cancelled meanwhile, or answered before
  }
  auto method = std::move(waits->second);
  awaited.erase(waits);
  learn(response, method);
  if (method == "tools/list" && revision.empty() && !response.result.empty()) {
    take_page(response);
    return;
  }
  std::string line;
  append_json_line(line, text);
  deliver(line + "\n");
}

/// A page of a modern server's tools: those that can't be called as the protocol asks are left out.
void mcp_http_link_state::take_page(const rpc_message& response) {
  auto page = upstream::read_page_headers(response.result);
  for (const auto& fault : page.refused) {
    env->log->warn("MCP server \"{}\": {}", entry.name, fault);
  }
  tool_headers.merge(page.tools);
  deliver(encode_result(response.id,
                        page.result.empty() ? response.result : std::string_view{page.result}));
}

void mcp_http_link_state::take_end(const http_end& end) {
  if (auto over = exchanges.extract(end.id)) {
    finish(end.id, std::move(over.mapped()), end.reason);
  }
}

void mcp_http_link_state::finish(exchange_id id, exchange done, const error& reason) {
  switch (done.what) {
  case role::post:
  case role::resume:
    conclude_post(std::move(done), reason);
    break;
  case role::listen:
    if (listening == id) {
      listening.reset();
      listen_again(done);
    }
    break;
  case role::events:
    if (event_stream == id) {
      events_ended(done, reason);
    }
    break;
  case role::goodbye:
    end_child();
    break;
  }
}

void mcp_http_link_state::conclude_post(exchange done, const error& reason) {
  const auto id = done.sent.id;
  if (reason.code == errc::none && done.status >= 300) {
    conclude_failure(std::move(done));
    return;
  }
  if (done.status != 0 && reason.code == errc::none && !done.body.empty() &&
      done.kind == upstream::body_kind::json && id != 0) {
    // As if it were the one event of a stream.
    auto number = env->next_serial();
    auto body = std::move(done.body);
    exchanges.emplace(number, std::move(done));
    take_text(number, body);
    auto still = exchanges.extract(number);
    if (!still) {
      return; // what it said ended all
    }
    done = std::move(still.mapped());
  }
  if (done.sent.method == "notifications/initialized" && step == session_step::announcing) {
    announced();
    return;
  }
  bool on_the_stream = goes == way::events && done.status != 0 && reason.code == errc::none;
  if (id == 0 || done.answered || !awaited.contains(id) || on_the_stream) {
    return;
  }
  if (done.events && !done.events->last_id().empty() && !revision.empty() &&
      reason.code != errc::unavailable) {
    resume(std::move(done), reason);
    return;
  }
  if (done.sent.renews) {
    renewal_failed(reason.code == errc::none ? error{errc::server_failed, "it gave no answer"}
                                             : reason);
    return;
  }
  if (done.what == role::resume) {
    refuse(id, {errc::server_failed,
                fmt::format("its answer broke off, and the server can't be reached any more; {}",
                            not_repeated)});
    return;
  }
  if (done.status != 0 && reason.code == errc::none) {
    refuse(id, {errc::server_failed,
                fmt::format("its answer ended without a response ({})",
                            upstream::describe_status(done.status, done.kind, done.body))});
    return;
  }
  auto text = reason.message;
  if (reason.code == errc::closed && done.sent.method == "tools/call") {
    text += fmt::format("; {}", not_repeated);
  }
  refuse(id, {reason.code == errc::unavailable || reason.code == errc::closed ? errc::server_failed
                                                                              : reason.code,
              std::move(text)});
}

} // namespace bulkhead
