// The streams of a session: who reads them, what is kept for who comes back.

#include "actors/http_session.hpp"

#include <algorithm>
#include <utility>

#include <caf/all.hpp>

#include "protocol/http_rules.hpp"

namespace bulkhead {

namespace {

outgoing_answer stream_head() {
  outgoing_answer head;
  head.fields = {{"Content-Type", "text/event-stream"},
                 {"Cache-Control", "no-cache"},
                 {"X-Accel-Buffering", "no"}};
  return head;
}

} // namespace

/// From now on `reply` is where the stream is read; an earlier reader has gone, whether we know it
/// yet or not.
void http_session_state::read_by(stream& which, io::http_reply_ptr reply) {
  close(which);
  which.to = std::move(reply);
  ++which.reader;
  which.to->when_gone(
      [me = http_transport_actor{self}, number = which.number, reader = which.reader] {
        caf::anon_send(me, end_atom::value, number, reader);
      });
}

void http_session_state::begin(stream& which) {
  which.now = stream::stage::streaming;
  if (!which.to) {
    return;
  }
  which.to->begin(stream_head());
  if (which.primed) {
    // Not an event that is kept: the place is that before the next one.
    which.to->write(encode_priming_event(to_string(event_place{which.number, which.last_event})));
  }
}

/// Gives the reader what is kept beyond an event.
void http_session_state::give(stream& which, std::uint64_t after) {
  for (const auto& event : which.kept) {
    if (event.number > after && which.to) {
      which.to->write(event.text);
      which.last_given = event.number;
    }
  }
}

void http_session_state::say(stream& which, std::string_view message) {
  kept_event event;
  event.number = ++which.last_event;
  event.text = encode_event(to_string(event_place{which.number, event.number}), message);
  if (which.to) {
    which.to->write(event.text);
    which.last_given = event.number;
  }
  keep(which, std::move(event));
}

void http_session_state::keep(stream& which, kept_event event) {
  auto bytes = event.text.size();
  if (bytes > context.allowance.replay ||
      !context.session.env->budget->take_if_ample(bytes, event.held)) {
    return;
  }
  which.kept.push_back(std::move(event));
  kept_bytes += bytes;
  // The oldest goes first, whatever its stream.
  for (auto& [number, old] : streams) {
    while (kept_bytes > context.allowance.replay && !old.kept.empty()) {
      kept_bytes -= old.kept.front().text.size();
      old.kept.pop_front();
    }
  }
}

/// The last message of a request's stream.
void http_session_state::finish(stream& which, const std::string& message) {
  bool failed = which.initializes && is_error_response(message);
  by_request.erase(which.request);
  context.load->requests = by_request.size();
  if (which.now == stream::stage::undecided) {
    auto answer = answer_with_message(message, 200);
    if (which.initializes && !failed) {
      answer.fields.push_back({"Mcp-Session-Id", context.id});
    }
    bool lost = which.initializes && (failed || !which.to || which.to->gone());
    if (which.to) {
      which.to->answer(std::move(answer));
    }
    erase(which.number);
    if (lost) {
      // Nobody knows the session's id.
      idle(context.id);
    }
    return;
  }
  say(which, message);
  which.now = stream::stage::over;
  which.since = self->clock().now();
  close(which);
}

void http_session_state::close(stream& which) {
  if (auto to = std::exchange(which.to, nullptr)) {
    to->end();
  }
}

void http_session_state::let_go(std::uint64_t number, std::uint64_t reader) {
  auto found = streams.find(number);
  if (found != streams.end() && found->second.reader == reader) {
    found->second.to = nullptr;
  }
}

void http_session_state::message_for(const std::string& request, const std::string& message) {
  auto found = by_request.find(request);
  if (found == by_request.end()) {
    return;
  }
  auto& which = streams[found->second];
  if (is_response(message)) {
    finish(which, message);
    return;
  }
  if (which.now == stream::stage::undecided) {
    begin(which);
  }
  say(which, message);
}

/// Lets the client come back for the rest.
void http_session_state::break_off(const std::string& request) {
  auto found = by_request.find(request);
  if (found == by_request.end()) {
    return;
  }
  auto& which = streams[found->second];
  if (which.now == stream::stage::undecided) {
    which.primed = true;
    begin(which);
  }
  if (which.to) {
    which.to->write(encode_retry(context.allowance.retry_ms));
  }
  close(which);
}

void http_session_state::drop_old_streams() {
  auto too_old = self->clock().now() - context.allowance.replay_time;
  std::vector<std::uint64_t> over;
  for (const auto& [number, which] : streams) {
    if (which.now == stream::stage::over) {
      over.push_back(number);
    }
  }
  for (std::size_t i = 0; i < over.size(); ++i) {
    if (over.size() - i > context.allowance.streams || streams[over[i]].since < too_old) {
      erase(over[i]);
    }
  }
}

void http_session_state::erase(std::uint64_t number) {
  auto found = streams.find(number);
  if (found == streams.end()) {
    return;
  }
  // An id may be another request's by now.
  if (auto named = by_request.find(found->second.request);
      named != by_request.end() && named->second == number) {
    by_request.erase(named);
  }
  context.load->requests = by_request.size();
  for (const auto& event : found->second.kept) {
    kept_bytes -= event.text.size();
  }
  streams.erase(found);
}

} // namespace bulkhead
