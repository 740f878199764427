#include "actors/mcp_client.hpp"

#include <caf/all.hpp>
#include <fmt/format.h>

/// What the server says, and how client and server come to know each other.
namespace bulkhead {

namespace {

using namespace std::chrono_literals;

/// How long a server has to answer server/discover before it is asked to initialize as well.
constexpr auto probe_time = 2s;

/// Over HTTP each request has an answer of its own, a refusal at the least; a server that has yet
/// to be woken up takes its time for it.
constexpr auto remote_probe_time = 20s;

} // namespace

void mcp_client_state::begin_handshake() {
  if (skip_probe || generation == upstream::era::legacy) {
    send_initialize();
    return;
  }
  send_discover();
  if (generation == upstream::era::unknown) {
    probe_due =
        now() + (remote() ? std::min<clock::duration>(entry.start_timeout / 2, remote_probe_time)
                          : clock::duration{probe_time});
  }
}

void mcp_client_state::send_discover() {
  current = phase::probing;
  discover_sent = true;
  discover_request = ++last_request;
  write(upstream::encode_discover(discover_request, abilities()));
}

void mcp_client_state::send_initialize() {
  current = phase::initializing;
  probe_due.reset();
  initialize_request = ++last_request;
  declared = abilities();
  write(upstream::encode_initialize(initialize_request, declared));
}

void mcp_client_state::discovered(const rpc_message& answer) {
  discover_request = 0;
  auto modern = upstream::read_discover(answer);
  if (current == phase::initializing) {
    // Late. A server of both generations has `initialize` before it by now, which settles it.
    late_modern = std::move(modern);
  } else if (current == phase::probing && modern) {
    become_ready(upstream::era::modern, std::move(*modern));
  } else if (current == phase::probing && initialize_failure) {
    start_failed(*initialize_failure);
  } else if (current == phase::probing) {
    send_initialize();
  }
}

void mcp_client_state::initialized(const rpc_message& answer) {
  initialize_request = 0;
  if (answer.error.empty()) {
    auto identity = upstream::read_initialize(answer.result);
    if (identity) {
      write(upstream::encode_initialized());
      become_ready(upstream::era::legacy, std::move(*identity));
    } else {
      start_failed(
          {errc::server_failed, fmt::format("start {}: {}", subject(), identity.error().message)});
    }
    return;
  }
  if (late_modern) {
    become_ready(upstream::era::modern, std::move(*late_modern));
    return;
  }
  auto reason = upstream::read_failure(answer.error);
  initialize_failure = error{errc::server_failed,
                             fmt::format("start {}: it refused to initialize: {} {}{}", subject(),
                                         reason.code, secrets.hide(reason.message), last_words())};
  if (discover_request != 0) {
    current = phase::probing; // the late answer decides
  } else if (!discover_sent) {
    // It may have become a modern server since it was last started.
    send_discover();
  } else {
    start_failed(*initialize_failure);
  }
}

void mcp_client_state::become_ready(upstream::era era, upstream::identity identity) {
  current = phase::ready;
  generation = era;
  server = std::move(identity);
  skip_probe = false;
  start_due.reset();
  probe_due.reset();
  env->log->info("{}: ready after {} ms: {} {}, MCP {}", subject(),
                 std::chrono::duration_cast<std::chrono::milliseconds>(now() - started_at).count(),
                 server.name, server.version, server.revision);
  send_waiting();
  if (!waiters.empty()) {
    begin_listing();
  }
  arm();
}

void mcp_client_state::take_line(std::string_view line) {
  auto start = line.find_first_not_of(" \t");
  if (start == std::string_view::npos || line[start] != '{' || current == phase::stopping) {
    // Noise: servers print what they like, and MCP has nothing but objects.
    return;
  }
  const auto& bounds = env->bounds;
  auto message = parse_rpc(line, {bounds.line, bounds.json_depth, bounds.json_nodes});
  if (!message) {
    take_unreadable(message.error().code, message.error().message, line, line);
    return;
  }
  switch (message->kind) {
  case rpc_kind::response:
    take_response(*message);
    break;
  case rpc_kind::request:
    take_request(*message);
    break;
  case rpc_kind::notification:
    take_notification(*message);
    break;
  }
}

void mcp_client_state::take_response(const rpc_message& message) {
  auto id = upstream::response_id(message.id);
  if (!id) {
    env->log->debug("{}: an answer to no request of ours: {}", subject(),
                    upstream::printable(secrets.hide(std::string{message.error}), 256));
  } else if (*id == discover_request) {
    discovered(message);
  } else if (*id == initialize_request) {
    initialized(message);
  } else if (list && *id == list->request) {
    take_page(message);
  } else {
    finish_call(*id, message);
  }
}

/// A message that can't be read fails whom it was for. If that can't be told and the message was
/// too large, it may have been anyone's.
void mcp_client_state::take_unreadable(errc reason, std::string_view why, std::string_view head,
                                       std::string_view tail) {
  auto found = upstream::salvage(head, tail);
  if (!found.answer) {
    return;
  }
  auto code = reason == errc::malformed ? errc::server_failed : reason;
  auto text = reason == errc::malformed ? fmt::format("its answer can't be read: {}", why)
                                        : std::string{why};
  if (found.id && list && *found.id == list->request) {
    fail_listing({code, std::move(text)});
  } else if (found.id && (*found.id == discover_request || *found.id == initialize_request)) {
    start_failed({code, fmt::format("start {}: {}", subject(), text)});
  } else if (found.id) {
    fail_call(*found.id, code, text);
  } else if (reason != errc::malformed) {
    for (auto id : calls.ids()) {
      fail_call(id, code, text);
    }
    if (list) {
      fail_listing({code, std::move(text)});
    }
  }
}

} // namespace bulkhead
