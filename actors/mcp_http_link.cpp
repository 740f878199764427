#include "actors/mcp_http_link.hpp"

#include <csignal>
#include <utility>

#include <caf/all.hpp>
#include <fmt/format.h>

#include "actors/errors.hpp"

/// What the client of a server over HTTP sees: a child that takes and gives lines.
namespace bulkhead {

using namespace std::chrono_literals;

namespace {

/// For the server to hear that a session is over; the client's patience with a child that is to
/// end is a second.
constexpr auto goodbye_time = 800ms;

} // namespace

mcp_http_link_state::mcp_http_link_state(mcp_http_link_actor::pointer self) : self{self} {}

scan_limits mcp_http_link_state::scan_bounds() const {
  return {env->bounds.line, env->bounds.json_depth, env->bounds.json_nodes};
}

caf::result<child_started> mcp_http_link_state::spawn(const child_owner_actor& of) {
  if (!url) {
    return to_caf(errc::invalid_argument,
                  fmt::format("its URL isn't one of http or https, or has a user name in "
                              "it; correct \"url\" in {}",
                              entry.source));
  }
  end_child();
  child = ++last_child;
  owner = caf::actor_cast<caf::actor_addr>(of);
  closing = met = token_asked = token_known = false;
  goes = entry.transport == server_transport::sse ? way::events : way::post;
  outstanding = 0;
  deaf = 0;
  heard_id.clear();
  token.clear();
  meta.clear();
  initialize.clear();
  initialized.clear();
  tool_headers.clear();
  return child_started{*child, 0};
}

void mcp_http_link_state::deliver(std::string line) {
  if (auto to = caf::actor_cast<server_owner_actor>(owner); to && child && !closing) {
    outstanding += line.size();
    self->send(to, child_output{*child, stream_id::out, std::move(line)});
  }
}

void mcp_http_link_state::refuse(std::uint64_t id, error reason) {
  awaited.erase(id);
  if (auto to = caf::actor_cast<server_owner_actor>(owner); to && child && !closing && id != 0) {
    self->send(to, refuse_atom::value, id, std::move(reason));
  }
}

/// Answers every request that waits, and forgets what was to be sent.
void mcp_http_link_state::refuse_all(const error& reason) {
  queue.clear();
  for (const auto& [id, method] : std::exchange(awaited, {})) {
    refuse(id, reason);
  }
}

void mcp_http_link_state::take_credit(std::uint64_t bytes) {
  outstanding -= std::min(outstanding, bytes);
  if (outstanding >= env->bounds.read_ahead) {
    return;
  }
  for (auto& [id, each] : exchanges) {
    if (each.owed > 0) {
      self->send(http, credit_atom::value, id, std::exchange(each.owed, 0));
    }
  }
}

/// Tells the server that the session is over, if there is one; then the child ends.
void mcp_http_link_state::close_input() {
  if (!child || closing) {
    return;
  }
  closing = true;
  queue.clear();
  awaited.clear();
  for (auto& [id, each] : std::exchange(exchanges, {})) {
    self->send(http, cancel_atom::value, id);
  }
  if (session.empty() || !url) {
    end_child();
    return;
  }
  http_request request;
  request.method = "DELETE";
  request.url = url->text();
  request.headers = headers_for({});
  exchange last;
  last.what = role::goodbye;
  open(env->next_serial(), std::move(request), std::move(last));
  after(goodbye_time, [this] { end_child(); });
}

/// Drops all at once.
void mcp_http_link_state::end_child() {
  for (auto& [id, each] : std::exchange(exchanges, {})) {
    self->send(http, cancel_atom::value, id);
  }
  queue.clear();
  awaited.clear();
  put_off.clear();
  session.clear();
  revision.clear();
  endpoint.reset();
  event_stream.reset();
  listening.reset();
  step = session_step::none;
  if (!child) {
    return;
  }
  if (auto to = caf::actor_cast<server_owner_actor>(owner)) {
    self->send(to, child_exited{*child, 0, 0});
  }
  child.reset();
}

void mcp_http_link_state::after(std::chrono::milliseconds time, std::function<void()> then) {
  auto number = ++last_put_off;
  put_off.emplace(number, std::move(then));
  self->delayed_send(self, time, tick_atom::value, number);
}

mcp_http_link_actor::behavior_type mcp_http_link_state::make_behavior() {
  self->set_exit_handler([this](caf::exit_msg& message) {
    // Linked with its client, of which nothing is left to be told.
    for (const auto& [id, each] : exchanges) {
      self->send(http, cancel_atom::value, id);
    }
    self->quit(std::move(message.reason));
  });
  self->set_down_handler([this](const caf::down_msg& down) {
    if (down.source == http.address()) {
      http = nullptr;
      for (auto& [id, each] : std::exchange(exchanges, {})) {
        finish(id, std::move(each), {errc::closed, "the HTTP client of Bulkhead failed"});
      }
    }
  });
  return {
      [this](spawn_atom, const process_spec&, const child_owner_actor& of) { return spawn(of); },
      [this](write_atom, child_id id, std::string& bytes) {
        if (child == id && !closing) {
          write(std::move(bytes));
        }
      },
      [this](close_input_atom, child_id id) {
        if (child == id) {
          close_input();
        }
      },
      [this](signal_atom, child_id id, std::int32_t) {
        if (child == id) {
          end_child();
        }
      },
      [this](credit_atom, child_id id, stream_id, std::uint64_t bytes) {
        if (child == id) {
          take_credit(bytes);
        }
      },
      [](kill_marked_atom, const std::string&) -> std::uint32_t { return 0; },
      [this](const http_head& head) { take_head(head); },
      [this](const http_body& body) { take_body(body); },
      [this](const http_end& end) { take_end(end); },
      [this](tick_atom, std::uint64_t number) {
        if (auto due = put_off.extract(number)) {
          due.mapped()();
        }
      },
  };
}

mcp_http_link_actor::behavior_type
mcp_http_link(mcp_http_link_actor::stateful_pointer<mcp_http_link_state> self, environment_ptr env,
              mcp_http_services services, server_entry entry) {
  auto& state = self->state;
  state.env = std::move(env);
  state.services = std::move(services);
  if (auto url = read_web_url(entry.url, "url")) {
    state.url = std::move(*url);
  }
  state.entry = std::move(entry);
  return state.make_behavior();
}

mcp_client_impl_actor::behavior_type
mcp_http_client(mcp_client_impl_actor::stateful_pointer<mcp_client_state> self, environment_ptr env,
                mcp_http_services services, server_entry entry) {
  child_host_actor link = self->spawn<caf::linked>(mcp_http_link, env, std::move(services), entry);
  return mcp_client(self, std::move(env), std::move(link), std::move(entry));
}

} // namespace bulkhead
