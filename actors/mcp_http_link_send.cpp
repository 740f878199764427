#include "actors/mcp_http_link.hpp"

#include <algorithm>
#include <utility>

#include <caf/all.hpp>
#include <fmt/format.h>

#include "actors/errors.hpp"
#include "protocol/ascii.hpp"
#include "protocol/mcp_client_protocol.hpp"
#include "protocol/oauth_credential.hpp"

/// From the client's lines to requests.
namespace bulkhead {

using namespace std::chrono_literals;

namespace {

/// What needs no answer has one soon, or never.
constexpr auto notification_time = 30s;

/// A refresh asks an authorization server.
constexpr auto token_time = 30s;

constexpr std::uint32_t most_redirects = 3;

/// Exchanges of one server under way, from which on only calls begin others: those have a bound of
/// their own, and the process has one for all servers together.
constexpr std::size_t most_exchanges = 48;

} // namespace

void mcp_http_link_state::write(std::string line) {
  auto size = line.size();
  if (auto to = caf::actor_cast<server_owner_actor>(owner)) {
    self->send(to, child_written{*child, size});
  }
  auto read = upstream::read_outgoing(line, scan_bounds());
  if (!read) {
    env->log->error("{}: a message of ours can't be read: {}", entry.name, read.error().message);
    return;
  }
  if (read->id == 0 && exchanges.size() >= most_exchanges) {
    // A server that asks without end and doesn't take the answers gets no more of them.
    return;
  }
  message made;
  made.method = read->method;
  made.id = read->id;
  made.modern = read->modern;
  if (made.modern && made.id != 0) {
    made.headers.emplace_back("Mcp-Method", made.method);
    if (!read->tool.empty()) {
      made.headers.emplace_back("Mcp-Name", upstream::encode_header_value(read->tool));
      if (auto known = tool_headers.find(read->tool); known != tool_headers.end()) {
        std::ranges::move(upstream::encode_param_headers(known->second, read->arguments),
                          std::back_inserter(made.headers));
      }
    }
  }
  if (made.method == "server/discover") {
    meta = read->meta;
  } else if (made.method == "initialize") {
    initialize = line;
    initialize_id = made.id;
  } else if (made.method == "notifications/initialized") {
    initialized = line;
  } else if (made.method == "notifications/cancelled") {
    cancel_request(read->cancels);
    if (revision.empty()) {
      return; // modern: the end of the stream says it (2026-07-28, "Cancellation")
    }
  }
  made.memory = std::make_shared<memory_budget::share>();
  if (!env->budget->take(size, *made.memory)) {
    refuse(made.id, {errc::overloaded, "no memory for the request now; try again later"});
    return;
  }
  made.line = std::move(line);
  if (made.id != 0) {
    awaited.emplace(made.id, made.method);
  }
  queue.push_back(std::move(made));
  pump();
}

/// Nobody waits for that request's answer any more.
void mcp_http_link_state::cancel_request(std::uint64_t id) {
  awaited.erase(id);
  std::erase_if(queue, [&](const message& each) { return each.id == id; });
  std::vector<exchange_id> its;
  for (const auto& [number, each] : exchanges) {
    if (id != 0 && each.sent.id == id) {
      its.push_back(number);
    }
  }
  for (auto number : its) {
    drop(number);
  }
}

void mcp_http_link_state::drop(exchange_id id) {
  self->send(http, cancel_atom::value, id);
  exchanges.erase(id);
}

/// Sends what may be sent now.
void mcp_http_link_state::pump() {
  while (!queue.empty() && ready_to_send()) {
    auto next = std::move(queue.front());
    queue.pop_front();
    if (next.refusal && token.empty()) {
      next.renews ? renewal_failed(*next.refusal) : refuse(next.id, *next.refusal);
      continue;
    }
    if (next.renews) {
      step = session_step::initializing;
    } else if (next.method == "notifications/initialized") {
      // What follows it mustn't overtake it.
      step = session_step::announcing;
    }
    send(std::move(next));
  }
}

bool mcp_http_link_state::ready_to_send() {
  if (!child || closing || step != session_step::none) {
    return false;
  }
  if (uses_token() && !token_known) {
    ask_for_token();
    return false;
  }
  if (goes == way::events && queue.front().method == "server/discover") {
    // Servers of that transport are older than the question.
    auto asked = std::move(queue.front());
    queue.pop_front();
    awaited.erase(asked.id);
    deliver(encode_error(std::to_string(asked.id), rpc_code::method_not_found,
                         "HTTP with server-sent events knows no server/discover"));
    return !queue.empty() && ready_to_send();
  }
  if (goes == way::events && !endpoint) {
    open_events();
    return false;
  }
  return true;
}

/// Configured credentials come before those of a login.
bool mcp_http_link_state::uses_token() const {
  return services.credentials && services.credentials() && !names_credentials();
}

bool mcp_http_link_state::names_credentials() const {
  return std::any_of(entry.headers.begin(), entry.headers.end(), [](const auto& header) {
    return lower_case(header.first) == "authorization";
  });
}

void mcp_http_link_state::ask_for_token() {
  if (std::exchange(token_asked, true)) {
    return;
  }
  auto due = deadline::at(self->clock().now() + token_time);
  self->request(services.credentials(), token_time + 1s, token_atom::value,
                std::string{local_owner}, entry.url, due)
      .then(
          [this, of = child](std::string& given) {
            if (of == child) {
              token_asked = false;
              token_known = true;
              token = std::move(given);
              pump();
            }
          },
          [this, of = child](const caf::error& reason) {
            if (of == child) {
              token_asked = false;
              refuse_all(from_caf(reason, "ask for its token"));
            }
          });
}

std::vector<http_header> mcp_http_link_state::headers_for(const message& what) const {
  std::vector<http_header> result;
  auto set = [&](std::string name, std::string value) {
    std::erase_if(result, [&](const http_header& header) {
      return lower_case(header.name) == lower_case(name);
    });
    result.push_back({std::move(name), std::move(value)});
  };
  for (const auto& [name, value] : entry.headers) {
    set(name, value);
  }
  if (!token.empty()) {
    set("Authorization", "Bearer " + token);
  }
  if (what.modern) {
    set("MCP-Protocol-Version", std::string{upstream::modern_revision});
  } else if (!revision.empty() && !what.renews && what.method != "initialize") {
    set("MCP-Protocol-Version", revision);
  }
  if (!session.empty()) {
    set("Mcp-Session-Id", session);
  }
  for (const auto& [name, value] : what.headers) {
    set(name, value);
  }
  return result;
}

void mcp_http_link_state::send(message what) {
  auto id = env->next_serial();
  http_request request;
  request.method = "POST";
  request.url = goes == way::events ? endpoint->text() : url->text();
  request.headers = headers_for(what);
  request.headers.push_back({"Content-Type", "application/json"});
  request.headers.push_back({"Accept", "application/json, text/event-stream"});
  request.body = what.line;
  request.redirects = most_redirects;
  exchange made;
  if (what.id == 0) {
    after(notification_time, [this, id] {
      if (auto late = exchanges.find(id); late != exchanges.end() && late->second.sent.id == 0) {
        auto over = std::move(late->second);
        drop(id);
        conclude_post(std::move(over), {errc::timeout, "no answer"});
      }
    });
  }
  made.sent = std::move(what);
  open(id, std::move(request), std::move(made));
}

void mcp_http_link_state::open(exchange_id id, http_request request, exchange what) {
  what.token = token;
  what.session = session;
  request.most_bytes = UINT64_MAX; // what counts is a message, and credit
  exchanges.emplace(id, std::move(what));
  auto current = services.http();
  if (!current) {
    after(0ms, [this, id] {
      if (auto over = exchanges.extract(id)) {
        finish(id, std::move(over.mapped()), {errc::unavailable, "Bulkhead is being stopped"});
      }
    });
    return;
  }
  if (current != http) {
    http = std::move(current);
    self->monitor(http);
  }
  self->send(http, open_atom::value, id, std::move(request), http_owner_actor{self});
}

} // namespace bulkhead
