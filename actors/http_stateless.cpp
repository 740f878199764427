#include "actors/http_stateless.hpp"

#include <charconv>
#include <utility>

#include <caf/all.hpp>
#include <fmt/format.h>

#include "protocol/http_rules.hpp"

namespace bulkhead {

http_stateless_state::http_stateless_state(http_transport_actor::pointer self)
    : http_transport_state{self} {}

void http_stateless_state::take(http_arrival& arrival) {
  const auto& id = arrival.posted.id;
  if (arrival.posted.kind != rpc_kind::request) {
    // The era has no notification that means anything over HTTP.
    outgoing_answer accepted;
    accepted.status = 202;
    arrival.reply->answer(std::move(accepted));
    return;
  }
  if (now != phase::open) {
    arrival.reply->answer(no_longer_served(id));
    return;
  }
  if (calls.size() >= context.allowance.modern_in_flight) {
    auto answer = refusal(429, rpc_code::internal_error,
                          fmt::format("{} requests are under way already; try again when some are "
                                      "answered",
                                      calls.size()),
                          id);
    answer.fields.push_back({"Retry-After", "1"});
    arrival.reply->answer(std::move(answer));
    return;
  }
  auto serial = context.session.env->next_serial();
  auto message = with_request_id(arrival.request.body, std::to_string(serial));
  arrival.reply->when_gone([me = http_transport_actor{self}, serial] {
    caf::anon_send(me, end_atom::value, serial, std::uint64_t{0});
  });
  calls.emplace(serial, call{id, std::move(arrival.reply), false, self->clock().now()});
  context.load->requests = calls.size();
  forwarded.push_back(std::move(arrival.held));
  self->send(session, message_atom::value, std::move(message), trace_of(arrival.request));
}

void http_stateless_state::message_for(const std::string& request, const std::string& message) {
  std::uint64_t serial = 0;
  std::from_chars(request.data(), request.data() + request.size(), serial);
  auto found = calls.find(serial);
  if (found == calls.end()) {
    return;
  }
  auto& which = found->second;
  auto theirs = readdressed(message, request, which.id);
  if (is_response(theirs)) {
    finish(found, theirs);
    return;
  }
  begin(which);
  which.reply->write(encode_event({}, theirs));
}

void http_stateless_state::begin(call& which) {
  if (std::exchange(which.streaming, true)) {
    return;
  }
  outgoing_answer head;
  head.fields = {{"Content-Type", "text/event-stream"},
                 {"Cache-Control", "no-cache"},
                 {"X-Accel-Buffering", "no"}};
  which.reply->begin(std::move(head));
}

void http_stateless_state::finish(std::map<std::uint64_t, call>::iterator found,
                                  const std::string& message) {
  auto which = std::move(found->second);
  calls.erase(found);
  context.load->requests = calls.size();
  if (which.streaming) {
    which.reply->write(encode_event({}, message));
    which.reply->end();
    return;
  }
  which.reply->answer(answer_with_message(message, status_of_response(message)));
}

/// Closing the stream is how a client cancels (2026-07-28, basic/transports/streamable-http
/// "Cancellation").
void http_stateless_state::client_gone(std::uint64_t serial) {
  if (calls.erase(serial) == 0) {
    return;
  }
  context.load->requests = calls.size();
  if (now == phase::open) {
    forwarded.push_back(nullptr);
    self->send(session, message_atom::value,
               encode_notification("notifications/cancelled",
                                   fmt::format(R"({{"requestId":{}}})", serial)));
  }
}

void http_stateless_state::session_lost() {
  if (now != phase::open) {
    return;
  }
  context.session.env->log->error("http: a session was lost to a fault");
  while (!calls.empty()) {
    auto first = calls.begin();
    finish(first, encode_error(first->second.id, rpc_code::internal_error,
                               "the session was lost to a fault of the server's"));
  }
  end();
}

void http_stateless_state::tick() {
  if (now == phase::ended) {
    return;
  }
  self->delayed_send(self, context.allowance.keep_alive, tick_atom::value);
  for (auto& [serial, which] : calls) {
    if (which.streaming || self->clock().now() - which.since >= context.allowance.keep_alive) {
      begin(which);
      which.reply->write(encode_keep_alive());
    }
  }
}

void http_stateless_state::stop() {
  stop_session([this] { end(); });
}

void http_stateless_state::end() {
  if (now == phase::ended) {
    return;
  }
  now = phase::ended;
  for (auto& [serial, which] : std::exchange(calls, {})) {
    if (which.streaming) {
      which.reply->write(encode_event(
          {}, encode_error(which.id, rpc_code::internal_error, why_no_longer_served())));
      which.reply->end();
    } else {
      which.reply->answer(no_longer_served(which.id));
    }
  }
  confirm_end();
  self->quit();
}

http_transport_actor::behavior_type http_stateless_state::make_behavior() {
  self->set_down_handler([this](const caf::down_msg&) { session_lost(); });
  self->delayed_send(self, context.allowance.keep_alive, tick_atom::value);
  return {
      [](message_atom, const std::string&) {
        // Whatever is said in this era belongs to a request.
      },
      [this](message_atom, const std::string& request, const std::string& message) {
        message_for(request, message);
      },
      [](line_atom, const std::string&) {},
      [](line_atom) {},
      [this](credit_atom, std::uint64_t) { taken(); },
      [](input_end_atom) {},
      [](drained_atom) {},
      [this](stop_atom) {
        auto promise = self->make_response_promise<caf::ok_atom>();
        stopping.push_back(promise);
        stop();
        return promise;
      },
      [this](http_arrival& arrival) { take(arrival); },
      [this](end_atom, std::uint64_t serial, std::uint64_t) { client_gone(serial); },
      [](interrupt_atom, const std::string&) {
        // The era knows no way back to a stream.
      },
      [this](tick_atom) { tick(); },
  };
}

http_transport_actor::behavior_type
http_stateless(http_transport_actor::stateful_pointer<http_stateless_state> self,
               http_transport_context context) {
  auto& state = self->state;
  state.begin_session(std::move(context));
  return state.make_behavior();
}

} // namespace bulkhead
