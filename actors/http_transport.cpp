#include "actors/http_transport.hpp"

#include <utility>

#include <caf/all.hpp>

#include "protocol/http_rules.hpp"

namespace bulkhead {

namespace {

/// The session bounds itself; this is for one that is stuck.
constexpr std::chrono::seconds session_stop_budget{12};

} // namespace

void http_transport_state::begin_session(http_transport_context made) {
  context = std::move(made);
  session = self->spawn<caf::monitored>(mcp_session, context.session, front_end_actor{self});
  self->attach_functor(
      [session = session](const caf::error&) { caf::anon_send(session, stop_atom::value); });
}

void http_transport_state::taken() {
  if (!forwarded.empty()) {
    forwarded.pop_front();
  }
}

void http_transport_state::stop_session(std::function<void()> then) {
  if (now != phase::open) {
    return;
  }
  now = phase::stopping;
  self->request(session, session_stop_budget, stop_atom::value)
      .then([then](caf::ok_atom) { then(); },
            [this, then](const caf::error& reason) {
              context.session.env->log->warn("http: a session didn't stop in order: {}",
                                             caf::to_string(reason));
              then();
            });
}

std::string_view why_no_longer_served() {
  return "the server is stopping, or serves this tenant no more; nothing else comes of the "
         "request. Try again later";
}

outgoing_answer no_longer_served(std::string_view id) {
  auto answer = refusal(503, rpc_code::internal_error, why_no_longer_served(), id);
  answer.fields.push_back({"Retry-After", "5"});
  return answer;
}

outgoing_answer answer_with_message(std::string message, std::uint32_t status) {
  outgoing_answer answer;
  answer.status = status;
  answer.fields = {{"Content-Type", "application/json"}};
  if (auto wait = overload_wait(message)) {
    answer.status = 429;
    answer.fields.push_back({"Retry-After", std::to_string(wait->count())});
  }
  answer.body = std::move(message);
  return answer;
}

void http_transport_state::confirm_end() {
  for (auto& promise : std::exchange(stopping, {})) {
    promise.deliver(caf::ok_atom::value);
  }
}

} // namespace bulkhead
