#include "actors/mcp_client.hpp"

#include <utility>

#include <caf/all.hpp>
#include <fmt/format.h>

#include "actors/errors.hpp"

/// What the server wants to know, or tells, in the middle of a call.
namespace bulkhead {

namespace {

using namespace std::chrono_literals;

/// Before a call is made again of which the server wants nothing but that (2026-07-28, "Multi
/// Round-Trip Requests", load shedding).
constexpr auto again_pause = 500ms;

} // namespace

/// What servers may ask of the client behind, and of us. A pooled client serves all connections of
/// one principal; what one of them can't be asked after all is refused when it comes to that.
client_abilities mcp_client_state::abilities() const {
  auto result = env->client->get();
  result.roots = !entry.roots.empty();
  return result;
}

void mcp_client_state::take_request(const rpc_message& message) {
  if (generation != upstream::era::legacy || !upstream::is_for_client(message.method)) {
    reply(upstream::answer_request(message, entry.roots));
    return;
  }
  auto refuse = [this, id = message.id](const rpc_refusal& why) {
    reply(encode_error(id, why.code, secrets.hide(why.message)));
  };
  auto question = upstream::read_question(message.method, message.params, declared, env->bounds);
  if (!question) {
    refuse(question.error());
    return;
  }
  auto call = calls.asking(now());
  if (!call) {
    refuse(upstream::unanswered(message.method, call.error()));
    return;
  }
  ask(*call, std::move(*question),
      [=, this, id = message.id, method = message.method,
       process = marker](const expected<std::string>& answer) {
        if (process != marker || current != phase::ready) {
          return;
        }
        answer ? reply(encode_result(id, *answer))
               : refuse(upstream::unanswered(method, answer.error()));
      });
}

/// Asks whoever made the call, whose time rests meanwhile.
void mcp_client_state::ask(std::uint64_t id, upstream::question what, answer_handler then) {
  auto& call = *calls.find(id);
  const auto& bounds = env->bounds;
  auto share = std::make_shared<memory_budget::share>();
  if (!call.caller) {
    then(fail(errc::unavailable, "in this call nobody can be asked"));
  } else if (call.questions >= bounds.call_questions || call.rested >= bounds.question_time) {
    then(fail(errc::limit, fmt::format("a call may ask {} questions, and for {} s in all",
                                       bounds.call_questions, bounds.question_time.count())));
  } else if (!env->budget->take(what.params.size(), *share)) {
    then(fail(errc::overloaded, "no memory for the question now; try again later"));
  } else {
    ++call.questions;
    calls.rest(id, call, now());
    auto caller_id = call.caller_id;
    self->request(call.caller, bounds.question_time + 1s,
                  server_question{caller_id, std::move(what.method), std::move(what.params)})
        .then([=, this](std::string& answer) { answered(caller_id, std::move(answer), then); },
              [=, this, held = share](const caf::error& reason) {
                answered(caller_id, tl::unexpected(from_caf(reason, "ask the client")), then);
              });
  }
}

void mcp_client_state::answered(std::uint64_t caller_id, expected<std::string> answer,
                                const answer_handler& then) {
  // It may be over, and another call of the same run the one in which was asked: a legacy server
  // doesn't say, and gets the answer all the same.
  if (auto id = calls.of_caller(caller_id)) {
    calls.resume(*id, *calls.find(*id), now());
  }
  if (answer && answer->size() > env->bounds.question) {
    answer = fail(errc::too_large, fmt::format("the answer has {} bytes; the limit is {}",
                                               answer->size(), env->bounds.question));
  }
  then(answer);
  send_waiting();
  arm();
}

/// A modern server wants input before it goes on: it gets the call again, with that.
void mcp_client_state::require_input(std::uint64_t id, const upstream::input_required& needed) {
  auto& call = *calls.find(id);
  if (++call.rounds > env->bounds.input_rounds) {
    fail_call(id, errc::server_failed,
              fmt::format("it still asks for more input after {} times", env->bounds.input_rounds));
    return;
  }
  input_round round;
  if (!env->budget->take(needed.state.size(), round.memory)) {
    fail_call(id, errc::overloaded, "no memory for its state now; try again later");
    return;
  }
  round.state = needed.state;
  std::vector<std::pair<std::string, upstream::question>> questions;
  for (const auto& request : needed.requests) {
    if (request.method == "roots/list" && !entry.roots.empty()) {
      round.responses.push_back({request.key, upstream::roots_result(entry.roots)});
      continue;
    }
    auto question =
        upstream::read_question(request.method, request.params, abilities(), env->bounds);
    if (!question) {
      fail_call(id, errc::unavailable,
                secrets.hide("it asks for input that it can't get: " + question.error().message));
      return;
    }
    questions.emplace_back(request.key, std::move(*question));
  }
  round.missing = questions.size();
  auto caller_id = call.caller_id;
  call.round = std::move(round);
  if (questions.empty()) {
    auto pause = needed.requests.empty() ? again_pause : 0ms;
    again.emplace(now() + pause, caller_id);
    make_due_calls_again();
    arm();
    return;
  }
  for (auto& [key, question] : questions) {
    if (auto still = calls.of_caller(caller_id)) {
      ask_for_input(*still, std::move(key), std::move(question));
    }
  }
}

void mcp_client_state::ask_for_input(std::uint64_t id, std::string key, upstream::question what) {
  auto caller_id = calls.find(id)->caller_id;
  auto method = what.method;
  ask(id, std::move(what), [=, this](const expected<std::string>& answer) {
    auto id = calls.of_caller(caller_id);
    if (!id) {
      return;
    }
    if (!answer) {
      fail_call(*id, answer.error().code,
                fmt::format("it asks for input ({}): {}", method, answer.error().message));
      return;
    }
    auto& round = *calls.find(*id)->round;
    round.responses.push_back({key, *answer});
    if (--round.missing == 0) {
      make_again(*id);
    }
  });
}

void mcp_client_state::make_due_calls_again() {
  while (!again.empty() && again.begin()->first <= now()) {
    auto id = calls.of_caller(again.begin()->second);
    again.erase(again.begin());
    if (id && current == phase::ready) {
      make_again(*id);
    }
  }
}

void mcp_client_state::make_again(std::uint64_t id) {
  auto new_id = ++last_request;
  auto& call = calls.rename(id, new_id);
  auto round = std::move(*call.round);
  call.round.reset();
  call.progress = upstream_call{}.progress;
  auto details = details_of(call);
  details.responses = std::move(round.responses);
  details.state = std::move(round.state);
  if (!write(upstream::encode_call(new_id, generation, call.tool, call.arguments, details))) {
    fail_call(new_id, errc::overloaded, "no memory for the input now; try again later");
  }
}

void mcp_client_state::take_notification(const rpc_message& message) {
  if (message.method == "notifications/tools/list_changed") {
    // Asked for when somebody wants to know, however often it is said.
    documents_changed = true;
    if (documents) {
      documents->outdated.set();
    }
  } else if (message.method == "notifications/progress") {
    take_progress(message.params);
  } else if (message.method == "notifications/message" &&
             env->log->should_log(spdlog::level::debug) && log_gate.pass(now())) {
    env->log->debug("{} says: {}", subject(), upstream::read_log(message.params, secrets));
  }
}

void mcp_client_state::take_progress(std::string_view params) {
  auto note = upstream::read_progress(params, secrets);
  auto* call = note ? calls.find(note->call) : nullptr;
  if (call == nullptr || !call->sent || !call->caller || note->progress <= call->progress) {
    return;
  }
  call->progress = note->progress;
  if (call->progress_gate.pass(now())) {
    self->send(call->caller, tool_progress{call->caller_id, note->progress, note->total,
                                           std::move(note->message)});
  }
}

} // namespace bulkhead
