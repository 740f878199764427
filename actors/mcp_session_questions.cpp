// What runs ask of the client: requests to it in the legacy era, results that ask for more in the
// modern one.

#include "actors/mcp_session.hpp"

#include <algorithm>
#include <utility>

#include <caf/all.hpp>
#include <fmt/format.h>

#include "actors/errors.hpp"
#include "protocol/json_rpc.hpp"
#include "protocol/json_text.hpp"

namespace bulkhead {

namespace {

using namespace std::chrono_literals;

/// Questions of one client that aren't answered; a person answers few at once.
constexpr std::size_t most_questions = 32;

/// Code that asks several servers at once has its questions put together; no person notices this.
constexpr auto gather_time = 20ms;

/// How long the answer of a run that ended waits for its client, and how many do.
constexpr auto kept_for = 2min;
constexpr std::size_t most_kept = 16;

error cannot_be_asked(std::string_view method, std::string_view lacking) {
  return {
      errc::unavailable,
      fmt::format("{}: this client can't be asked that, it doesn't declare {}", method, lacking)};
}

rpc_refusal bad_state(std::string message) {
  return {rpc_code::invalid_params, std::move(message), {}};
}

} // namespace

client_abilities mcp_session_state::abilities_of(const mcp_request& request) const {
  return request.modern ? read_client_abilities(request.abilities, modern_revision) : abilities;
}

void mcp_session_state::note_abilities(const client_abilities& current) {
  if (context.only_client) {
    context.env->client->set(current);
  }
}

std::optional<error> mcp_session_state::why_not_ask(const client_question& question) const {
  auto found = runs.find(question.run);
  if (now != phase::open || found == runs.end()) {
    return error{errc::closed, question.method + ": the run is over"};
  }
  if (found->second.cancelled) {
    return error{errc::cancelled, question.method + ": the client cancelled the run"};
  }
  auto lacking = lacking_capability(found->second.abilities, question.method, question.params);
  if (!lacking.empty()) {
    return cannot_be_asked(question.method, lacking);
  }
  if (questions.size() >= most_questions) {
    return error{errc::overloaded, fmt::format("{}: {} questions wait for the client already",
                                               question.method, questions.size())};
  }
  if (question.due.remaining(self->clock().now()) <= 0ns) {
    return error{errc::timeout, question.method + ": there is no time left to ask the client"};
  }
  return std::nullopt;
}

caf::result<std::string> mcp_session_state::ask(client_question& asked) {
  if (auto reason = why_not_ask(asked)) {
    return to_caf(*reason);
  }
  auto& run = runs[asked.run];
  // A question of our own has no name before it is asked: only a person who saw it can answer it.
  if (auto known = run.early.extract(asked.key); known && !asked.key.empty()) {
    if (auto sound = check_client_result(asked.method, known.mapped()); !sound) {
      return to_caf(sound.error());
    }
    return std::move(known.mapped());
  }
  auto params = question_params(asked.method, asked.params, asked.server);
  if (!params) {
    return to_caf(params.error());
  }
  question which;
  if (!context.env->budget->take_if_ample(params->size(), which.held)) {
    return to_caf(errc::overloaded,
                  asked.method + ": too much is going on at once (memory budget)");
  }
  which.run = asked.run;
  which.method = std::move(asked.method);
  which.params = std::move(*params);
  which.promise = self->make_response_promise<std::string>();
  auto promise = which.promise;
  auto serial = ++last_question;
  self->delayed_send<caf::message_priority::high>(self, asked.due.remaining(self->clock().now()),
                                                  tick_atom::value, serial);
  which.key = run.form.modern ? key_for(run, which, std::move(asked.key))
                              : fmt::format("bulkhead-{}", serial);
  auto& added = questions.emplace(serial, std::move(which)).first->second;
  run.form.modern ? gather(run) : ask_by_request(added, run.request);
  return promise;
}

/// The name of a question among those of its run: the one that it has, else one that tells what it
/// is.
std::string mcp_session_state::key_for(run_in_flight& run, const question& which,
                                       std::string key) const {
  auto in_use = [&](const auto& entry) {
    return entry.second.run == which.run && entry.second.key == key;
  };
  auto kind = std::string_view{which.method}.substr(0, which.method.find('/'));
  while (key.empty() || std::any_of(questions.begin(), questions.end(), in_use)) {
    key = fmt::format("{}-{}", kind, ++run.questions);
  }
  return key;
}

/// Has the run's questions put to the client in a moment, unless the client has yet to come back.
void mcp_session_state::gather(run_in_flight& run) {
  if (!run.gathering && !run.request.empty()) {
    run.gathering = true;
    self->delayed_send(self, gather_time, tick_atom::value, run_atom::value, run.what.id);
  }
}

void mcp_session_state::ask_by_request(question& which, const std::string& request) {
  which.asked = true;
  which.request = request;
  write_for(request, encode_request(json_quote(which.key), which.method, which.params));
  which.params = {};
  which.held.release();
}

/// Answers the client's request with all that the run has asked so far. Where the client hasn't
/// come back from the last time, it is asked when it does.
void mcp_session_state::put_to_client(const std::string& id) {
  auto found = runs.find(id);
  if (found == runs.end()) {
    return;
  }
  auto& run = found->second;
  run.gathering = false;
  std::vector<input_request> asked;
  for (auto next = questions.begin(); next != questions.end() && !run.request.empty();) {
    auto& [serial, which] = *next++;
    if (which.run != id) {
      continue;
    }
    // A client that came back may declare less than before.
    auto lacking = lacking_capability(run.abilities, which.method, which.params);
    if (!lacking.empty()) {
      end_question(serial, cannot_be_asked(which.method, lacking));
      continue;
    }
    which.asked = true;
    asked.push_back({which.key, which.method, which.params});
  }
  if (asked.empty()) {
    return;
  }
  run.state = context.env->new_handle();
  states.emplace(run.state, id);
  auto request = std::exchange(run.request, {});
  requests.erase(request);
  respond(request, input_required_result(asked, run.state));
}

void mcp_session_state::take_response(const rpc_message& message) {
  for (const auto& [serial, which] : questions) {
    if (!which.request.empty() && json_quote(which.key) == message.id) {
      if (message.error.empty()) {
        answer(serial, message.result);
      } else {
        end_question(serial, question_refused(which.method, message.error));
      }
      return;
    }
  }
  context.env->log->debug("session: a response came that nobody waits for");
}

void mcp_session_state::answer(std::uint64_t serial, std::string_view result) {
  auto node = questions.extract(serial);
  auto& which = node.mapped();
  if (auto sound = check_client_result(which.method, result); sound) {
    which.promise.deliver(std::string{result});
  } else {
    which.promise.deliver(to_caf(sound.error()));
  }
}

void mcp_session_state::end_question(std::uint64_t serial, error reason) {
  auto node = questions.extract(serial);
  node.mapped().promise.deliver(to_caf(reason));
}

void mcp_session_state::end_questions(const std::string& run, const error& reason) {
  for (auto next = questions.begin(); next != questions.end();) {
    auto found = next++;
    auto& which = found->second;
    if (which.run != run) {
      continue;
    }
    withdraw(which, reason.message);
    which.promise.deliver(to_caf(reason.code, which.method + ": " + reason.message));
    questions.erase(found);
  }
}

/// Tells a client of the legacy era that its answer isn't wanted any more.
void mcp_session_state::withdraw(const question& which, std::string_view reason) {
  if (!which.request.empty()) {
    write_for(which.request,
              encode_notification("notifications/cancelled",
                                  fmt::format(R"({{"requestId":{},"reason":{}}})",
                                              json_quote(which.key), json_quote(reason))));
  }
}

void mcp_session_state::question_due(std::uint64_t serial) {
  if (auto found = questions.find(serial); found != questions.end()) {
    constexpr std::string_view reason = "the client didn't answer in time";
    withdraw(found->second, reason);
    end_question(serial, {errc::timeout, fmt::format("{}: {}", found->second.method, reason)});
  }
}

/// Why a client can't come back like this to the run, or kept answer, that its state names.
std::optional<rpc_refusal> mcp_session_state::refuse_return(const std::string& run,
                                                            std::size_t digest,
                                                            const input_responses& back) const {
  auto going_on = runs.find(run);
  auto over = kept.find(back.state);
  if (going_on == runs.end() && over == kept.end()) {
    return bad_state("requestState is of no use: it isn't the one that an answer gave, or was used "
                     "already, or its run is long over; call the tool again without it");
  }
  if (digest != (over == kept.end() ? going_on->second.digest : over->second.digest)) {
    return bad_state("requestState belongs to a call with other arguments; come back with the same "
                     "tool and arguments as in the call that gave it");
  }
  for (const auto& [serial, which] : questions) {
    auto found =
        which.run == run && which.asked ? back.answers.find(which.key) : back.answers.end();
    if (found == back.answers.end()) {
      continue;
    }
    if (auto sound = check_client_result(which.method, found->second); !sound) {
      return bad_state("inputResponses: " + sound.error().message);
    }
  }
  return std::nullopt;
}

/// The answers that come along with a call that is to begin. Nothing: it goes on with a call that
/// waits for them, or is refused.
std::optional<input_responses> mcp_session_state::begin_or_come_back(const rpc_message& message,
                                                                     const mcp_request& request) {
  if (!request.modern) {
    return input_responses{};
  }
  auto given = read_input_responses(request);
  if (!given) {
    refuse(message.id, given.error());
    return std::nullopt;
  }
  if (!given->state.empty()) {
    come_back(message, request, std::move(*given));
    return std::nullopt;
  }
  return std::move(*given);
}

void mcp_session_state::come_back(const rpc_message& message, const mcp_request& request,
                                  input_responses back) {
  auto state = states.find(back.state);
  auto id = state == states.end() ? std::string{} : state->second;
  auto digest = call_digest(request.text("name").value_or(""), request.find("arguments"));
  if (auto refusal = refuse_return(id, digest, back)) {
    refuse(message.id, *refusal);
    return;
  }
  if (auto over = kept.extract(back.state)) {
    respond(message.id, over.mapped().result);
    return;
  }
  states.erase(state);
  auto& run = runs[id];
  run.state.clear();
  run.request = message.id;
  run.abilities = abilities_of(request);
  run.progress_token = request.progress_token;
  run.log_level = request.log_level;
  requests.emplace(message.id, id);
  if (!run.progress_token.empty()) {
    schedule_tick();
  }
  take_answers(run, back);
}

/// Those that it lacks are asked for again, those that nobody asked for left alone.
void mcp_session_state::take_answers(run_in_flight& run, input_responses& back) {
  std::vector<std::uint64_t> answered;
  bool more = false;
  for (auto& [serial, which] : questions) {
    if (which.run != run.what.id) {
      continue;
    }
    if (which.asked && back.answers.count(which.key) > 0) {
      answered.push_back(serial);
    } else {
      which.asked = false;
      more = true;
    }
  }
  for (auto serial : answered) {
    answer(serial, back.answers[questions[serial].key]);
  }
  if (more) {
    gather(run);
  }
}

void mcp_session_state::keep_answer(run_in_flight& run, std::string result) {
  states.erase(run.state);
  kept_answer over;
  over.digest = run.digest;
  if (now != phase::open || kept.size() >= most_kept ||
      !context.env->budget->take_if_ample(result.size(), over.held)) {
    context.env->log->warn("run {}: its answer is dropped: its client didn't come back",
                           run.what.id);
    return;
  }
  over.result = std::move(result);
  kept.emplace(run.state, std::move(over));
  self->delayed_send(self, kept_for, tick_atom::value, end_atom::value, run.state);
}

} // namespace bulkhead
