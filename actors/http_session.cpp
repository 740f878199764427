#include "actors/http_session.hpp"

#include <utility>

#include <caf/all.hpp>
#include <fmt/format.h>

#include "protocol/http_rules.hpp"
#include "protocol/json_text.hpp"
#include "protocol/mcp_request.hpp"

namespace bulkhead {

namespace {

/// The first revision whose clients expect an event without data.
constexpr std::string_view first_with_priming = "2025-11-25";

outgoing_answer accepted() {
  outgoing_answer answer;
  answer.status = 202;
  return answer;
}

bool primes(const incoming_request& request) {
  const auto* version = request.find("mcp-protocol-version");
  return version != nullptr && *version >= first_with_priming;
}

} // namespace

http_session_state::http_session_state(http_transport_actor::pointer self)
    : http_transport_state{self} {}

void http_session_state::take(http_arrival& arrival) {
  last_used = self->clock().now();
  if (now != phase::open) {
    arrival.reply->answer(ended(arrival.posted.id));
  } else if (arrival.request.method == "POST") {
    take_post(arrival);
  } else if (arrival.request.method == "GET") {
    take_get(arrival);
  } else {
    outgoing_answer done;
    done.status = 204;
    arrival.reply->answer(std::move(done));
    stop();
  }
}

void http_session_state::take_post(http_arrival& arrival) {
  if (arrival.posted.kind == rpc_kind::request) {
    take_request(arrival);
    return;
  }
  arrival.reply->answer(accepted());
  if (arrival.posted.method == "notifications/cancelled") {
    note_cancelled(arrival.request.body);
  }
  forward(arrival);
}

void http_session_state::take_request(http_arrival& arrival) {
  const auto& id = arrival.posted.id;
  if (by_request.contains(id)) {
    arrival.reply->answer(
        refusal(400, rpc_code::invalid_request,
                fmt::format("the id {} is in use by a request that isn't answered yet", id), id));
    return;
  }
  if (by_request.size() >= context.allowance.in_flight) {
    auto answer = refusal(429, rpc_code::internal_error,
                          fmt::format("{} requests of this session are under way already; try "
                                      "again when some are answered",
                                      by_request.size()),
                          id);
    answer.fields.push_back({"Retry-After", "1"});
    arrival.reply->answer(std::move(answer));
    return;
  }
  auto number = ++last_stream;
  auto& made = streams[number];
  made.number = number;
  made.request = id;
  made.initializes = arrival.posted.initializes;
  made.primed = primes(arrival.request);
  made.since = self->clock().now();
  by_request.emplace(id, number);
  context.load->requests = by_request.size();
  read_by(made, std::move(arrival.reply));
  if (made.primed && arrival.posted.method == "tools/call") {
    // It may take a while, and only a stream that has begun can be come back to.
    begin(made);
  }
  forward(arrival);
}

void http_session_state::take_get(http_arrival& arrival) {
  if (const auto* last = arrival.request.find("last-event-id")) {
    resume(arrival, *last);
    return;
  }
  auto& unrelated = streams[0];
  unrelated.primed = primes(arrival.request);
  read_by(unrelated, std::move(arrival.reply));
  begin(unrelated);
  give(unrelated, unrelated.last_given);
}

void http_session_state::resume(http_arrival& arrival, std::string_view last_event) {
  auto place = read_event_place(last_event);
  auto found = place ? streams.find(place->stream) : streams.end();
  if (found == streams.end() || found->second.now == stream::stage::undecided) {
    arrival.reply->answer(refusal(400, rpc_code::invalid_request,
                                  "Last-Event-ID names no event that is kept here; what follows "
                                  "it can't be had any more"));
    return;
  }
  auto& which = found->second;
  bool over = which.now == stream::stage::over;
  read_by(which, std::move(arrival.reply));
  begin(which);
  give(which, place->event);
  if (over) {
    which.now = stream::stage::over;
    close(which);
  }
}

/// Hands the message to the session, which gives its bytes back when it has dealt with it.
void http_session_state::forward(http_arrival& arrival) {
  forwarded.push_back(std::move(arrival.held));
  self->send(session, message_atom::value, std::move(arrival.request.body),
             trace_of(arrival.request));
}

/// No answer comes to a request that its client has cancelled.
void http_session_state::note_cancelled(const std::string& body) {
  const auto& bounds = context.session.env->bounds;
  scan_limits scan{bounds.line, bounds.json_depth, bounds.json_nodes};
  auto message = parse_rpc(body, scan);
  auto request =
      message ? read_mcp_request(*message, scan) : tl::unexpected<rpc_refusal>(rpc_refusal{});
  if (!request) {
    return;
  }
  auto id = request->find("requestId");
  auto spelled = is_json_string(id) ? json_quote(decode_json_string(id)) : std::string{id};
  auto found = by_request.find(spelled);
  if (found == by_request.end() || streams[found->second].initializes) {
    return;
  }
  auto& which = streams[found->second];
  begin(which);
  which.now = stream::stage::over;
  close(which);
  erase(which.number);
}

void http_session_state::session_lost() {
  if (now != phase::open) {
    return;
  }
  context.session.env->log->error("http: a session was lost to a fault");
  while (!by_request.empty()) {
    auto& which = streams.at(by_request.begin()->second);
    finish(which, encode_error(which.request, rpc_code::internal_error,
                               "the session was lost to a fault of the server's"));
  }
  end();
}

void http_session_state::tick() {
  if (now == phase::ended) {
    return;
  }
  self->delayed_send(self, context.allowance.keep_alive, tick_atom::value);
  bool used = !by_request.empty();
  for (auto& [number, which] : streams) {
    if (!which.to || which.now == stream::stage::over) {
      continue;
    }
    used = true;
    if (which.now == stream::stage::undecided &&
        self->clock().now() - which.since >= context.allowance.keep_alive) {
      begin(which);
    } else if (which.now == stream::stage::streaming) {
      which.to->write(encode_keep_alive());
    }
  }
  drop_old_streams();
  if (used) {
    last_used = self->clock().now();
  } else if (self->clock().now() - last_used >= context.allowance.session_idle) {
    idle(context.id);
  }
}

/// The answer to a request that the session came to its end before.
outgoing_answer http_session_state::ended(std::string_view request) const {
  return is_stopped ? no_longer_served(request)
                    : refusal(404, rpc_code::invalid_request,
                              "the session has ended; initialize another", request);
}

void http_session_state::stop() {
  stop_session([this] { end(); });
}

void http_session_state::end() {
  if (now == phase::ended) {
    return;
  }
  now = phase::ended;
  for (auto& [number, which] : streams) {
    if (which.now == stream::stage::undecided && which.to) {
      which.to->answer(ended(which.request));
    } else {
      bool waits = which.now == stream::stage::streaming && !which.request.empty();
      if (waits && is_stopped) {
        say(which, encode_error(which.request, rpc_code::internal_error, why_no_longer_served()));
      }
      close(which);
    }
  }
  streams.clear();
  confirm_end();
  idle(context.id);
  self->quit();
}

http_transport_actor::behavior_type http_session_state::make_behavior() {
  self->set_down_handler([this](const caf::down_msg&) { session_lost(); });
  self->delayed_send(self, context.allowance.keep_alive, tick_atom::value);
  return {
      [this](message_atom, const std::string& message) { say(streams[0], message); },
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
        is_stopped = is_stopped || now == phase::open;
        stop();
        return promise;
      },
      [this](http_arrival& arrival) { take(arrival); },
      [this](end_atom, std::uint64_t number, std::uint64_t reader) { let_go(number, reader); },
      [this](interrupt_atom, const std::string& request) { break_off(request); },
      [this](tick_atom) { tick(); },
  };
}

http_transport_actor::behavior_type
http_session(http_transport_actor::stateful_pointer<http_session_state> self,
             http_transport_context context, std::function<void(std::string id)> idle) {
  auto& state = self->state;
  state.last_used = self->clock().now();
  state.streams[0].now = http_session_state::stream::stage::streaming;
  state.idle = std::move(idle);
  // A weak handle: what the session holds would hold this actor.
  context.session.break_off = [me = caf::actor_cast<caf::actor_addr>(http_transport_actor{self})](
                                  const std::string& request) {
    if (auto client = caf::actor_cast<http_transport_actor>(me)) {
      caf::anon_send(client, interrupt_atom::value, request);
    }
  };
  state.begin_session(std::move(context));
  return state.make_behavior();
}

} // namespace bulkhead
