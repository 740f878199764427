#include "actors/http_front_end.hpp"

#include <algorithm>
#include <utility>

#include <caf/all.hpp>
#include <fmt/format.h>

#include "actors/http_session.hpp"
#include "actors/http_stateless.hpp"
#include "protocol/http_rules.hpp"

namespace bulkhead {

namespace {

using std::chrono::seconds;

constexpr seconds client_stop_budget{13};
constexpr std::string_view session_header = "mcp-session-id";

outgoing_answer not_served(std::string_view id) {
  return refusal(
      403, rpc_code::invalid_request,
      "the tenant of this token isn't served here now; whoever runs the server finds out why "
      "in its log",
      id);
}

} // namespace

http_front_end_state::http_front_end_state(http_front_end_actor::pointer self) : self{self} {}

void http_front_end_state::take(http_arrival& arrival) {
  const auto& request = arrival.request;
  if (is_stopping) {
    arrival.reply->answer(no_longer_served({}));
    return;
  }
  if (context.count_request && put_off(arrival, context.count_request(request.principal))) {
    return;
  }
  if (request.method != "POST") {
    if (auto legacy = check_session_era(request); !legacy) {
      arrival.reply->answer(legacy.error());
      return;
    }
    take_legacy(arrival);
    return;
  }
  have_read(arrival);
}

/// It comes back as a message of its own.
void http_front_end_state::have_read(http_arrival& arrival) {
  const auto& principal = arrival.request.principal;
  auto found = readers.find(principal);
  if (found == readers.end()) {
    if (!context.session_of(principal)) {
      arrival.reply->answer(not_served({}));
      return;
    }
    // A weak handle: this actor holds the reader.
    http_reader_context made{
        context.env, context.mirrored,
        [me = caf::actor_cast<caf::actor_addr>(http_front_end_actor{self})](http_arrival read) {
          if (auto front_end = caf::actor_cast<http_front_end_actor>(me)) {
            caf::anon_send(front_end, message_atom::value, std::move(read));
          }
        }};
    http_reader_actor reader = self->spawn<caf::monitored>(http_reader, std::move(made));
    found = readers.emplace(principal, std::move(reader)).first;
  }
  self->send(found->second, std::move(arrival));
}

void http_front_end_state::take_read(http_arrival& arrival) {
  const auto& request = arrival.request;
  if (is_stopping) {
    arrival.reply->answer(no_longer_served(arrival.posted.id));
    return;
  }
  if (context.put_off_call && arrival.posted.method == "tools/call" &&
      put_off(arrival, context.put_off_call(request.principal))) {
    return;
  }
  arrival.posted.of == posted_message::era::modern ? take_modern(arrival) : take_legacy(arrival);
}

bool http_front_end_state::put_off(http_arrival& arrival, const std::optional<too_soon>& reason) {
  if (!reason) {
    return false;
  }
  auto answer = refusal(429, rpc_code::internal_error, reason->why, arrival.posted.id,
                        overload_data(reason->again));
  answer.fields.push_back({"Retry-After", std::to_string(reason->again.count())});
  arrival.reply->answer(std::move(answer));
  return true;
}

void http_front_end_state::take_modern(http_arrival& arrival) {
  const auto& principal = arrival.request.principal;
  auto found = modern.find(principal);
  if (found == modern.end()) {
    auto talks_to = context.session_of(principal);
    if (!talks_to) {
      arrival.reply->answer(not_served(arrival.posted.id));
      return;
    }
    http_transport_context made{std::move(*talks_to), context.allowance, {}};
    http_transport_actor client = self->spawn<caf::monitored>(http_stateless, std::move(made));
    all.emplace(client.address(), client);
    found = modern.emplace(principal, client).first;
  }
  self->send(found->second, std::move(arrival));
}

void http_front_end_state::take_legacy(http_arrival& arrival) {
  const auto& request = arrival.request;
  if (arrival.posted.initializes) {
    open_session(arrival);
    return;
  }
  if (request.count(session_header) != 1) {
    arrival.reply->answer(refusal(400, rpc_code::invalid_request,
                                  "the header Mcp-Session-Id must be there, once: initialize "
                                  "first, and send the id that the answer gives",
                                  arrival.posted.id));
    return;
  }
  // A foreign session looks like none.
  auto found = sessions.find(*request.find(session_header));
  if (found == sessions.end() || found->second.principal != request.principal) {
    arrival.reply->answer(refusal(404, rpc_code::invalid_request,
                                  "there is no such session, or it has ended; initialize another",
                                  arrival.posted.id));
    return;
  }
  auto client = found->second.actor;
  found->second.last_used = self->clock().now();
  if (request.method == "DELETE") {
    sessions.erase(found);
  }
  self->send(client, std::move(arrival));
}

void http_front_end_state::open_session(http_arrival& arrival) {
  const auto& principal = arrival.request.principal;
  if (!make_room(principal)) {
    auto answer = refusal(503, rpc_code::internal_error,
                          "too many sessions are at work; end one (DELETE) or try again later",
                          arrival.posted.id);
    answer.fields.push_back({"Retry-After", "5"});
    arrival.reply->answer(std::move(answer));
    return;
  }
  auto talks_to = context.session_of(principal);
  if (!talks_to) {
    arrival.reply->answer(not_served(arrival.posted.id));
    return;
  }
  http_transport_context made{std::move(*talks_to), context.allowance, context.env->new_handle()};
  auto id = made.id;
  auto load = made.load;
  auto tell = [me = http_front_end_actor{self}](std::string ended) {
    caf::anon_send(me, end_atom::value, std::move(ended));
  };
  http_transport_actor actor = self->spawn<caf::monitored>(http_session, std::move(made), tell);
  all.emplace(actor.address(), actor);
  sessions.emplace(id, client{actor, principal, std::move(load), self->clock().now()});
  self->send(actor, std::move(arrival));
}

/// The principal's session that was unused for longest, and does nothing now, makes room.
bool http_front_end_state::make_room(const std::string& principal) {
  std::size_t count = 0;
  auto oldest = sessions.end();
  for (auto each = sessions.begin(); each != sessions.end(); ++each) {
    if (each->second.principal != principal) {
      continue;
    }
    ++count;
    if (each->second.load->requests == 0 &&
        (oldest == sessions.end() || each->second.last_used < oldest->second.last_used)) {
      oldest = each;
    }
  }
  if (count < context.allowance.sessions) {
    return true;
  }
  if (oldest == sessions.end()) {
    return false;
  }
  end_session(std::string{oldest->first});
  return true;
}

void http_front_end_state::end_session(const std::string& id) {
  auto found = sessions.find(id);
  if (found != sessions.end()) {
    auto ended = found->second.actor;
    sessions.erase(found);
    stop_client(ended);
  }
}

void http_front_end_state::stop_principal(const std::string& principal) {
  if (auto found = modern.find(principal); found != modern.end()) {
    stop_client(found->second);
    modern.erase(found);
  }
  if (auto found = readers.find(principal); found != readers.end()) {
    self->send(found->second, stop_atom::value);
    readers.erase(found);
  }
  std::vector<std::string> ids;
  for (const auto& [id, client] : sessions) {
    if (client.principal == principal) {
      ids.push_back(id);
    }
  }
  for (const auto& id : ids) {
    end_session(id);
  }
}

void http_front_end_state::stop_client(const http_transport_actor& which) {
  // Its end tells that it is gone, not its answer.
  self->request(which, client_stop_budget, stop_atom::value)
      .then([](caf::ok_atom) {}, [](const caf::error&) {});
}

void http_front_end_state::died(const caf::down_msg& down) {
  all.erase(down.source);
  std::erase_if(modern, [&](const auto& each) { return each.second.address() == down.source; });
  std::erase_if(readers, [&](const auto& each) { return each.second.address() == down.source; });
  std::erase_if(sessions,
                [&](const auto& each) { return each.second.actor.address() == down.source; });
  answer_if_stopped();
}

caf::result<caf::ok_atom> http_front_end_state::stop() {
  auto promise = self->make_response_promise<caf::ok_atom>();
  stopping.push_back(promise);
  if (!std::exchange(is_stopping, true)) {
    for (const auto& [address, client] : all) {
      stop_client(client);
    }
    for (const auto& [principal, reader] : readers) {
      self->send(reader, stop_atom::value);
    }
  }
  answer_if_stopped();
  return promise;
}

void http_front_end_state::answer_if_stopped() {
  if (!is_stopping || !all.empty() || !readers.empty()) {
    return;
  }
  for (auto& promise : std::exchange(stopping, {})) {
    promise.deliver(caf::ok_atom::value);
  }
  self->quit();
}

http_front_end_actor::behavior_type http_front_end_state::make_behavior() {
  self->set_down_handler([this](const caf::down_msg& down) { died(down); });
  return {
      [this](http_arrival& arrival) { take(arrival); },
      [this](message_atom, http_arrival& arrival) { take_read(arrival); },
      [this](end_atom, const std::string& id) { end_session(id); },
      [this](stop_atom, const std::string& principal) { stop_principal(principal); },
      [this](stop_atom) { return stop(); },
  };
}

http_front_end_actor::behavior_type
http_front_end(http_front_end_actor::stateful_pointer<http_front_end_state> self,
               http_front_end_context context) {
  self->state.context = std::move(context);
  return self->state.make_behavior();
}

std::function<void(incoming_request, memory_budget::share, io::http_reply_ptr)>
http_requests_to(const http_front_end_actor& to) {
  return [to](incoming_request request, memory_budget::share held, io::http_reply_ptr reply) {
    http_arrival arrival;
    arrival.request = std::move(request);
    arrival.held = std::make_shared<memory_budget::share>(std::move(held));
    arrival.reply = std::move(reply);
    caf::anon_send(to, std::move(arrival));
  };
}

} // namespace bulkhead
