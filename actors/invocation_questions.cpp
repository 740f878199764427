// What servers ask and tell in the middle of a run's calls: passed on to the client, whose time the
// run's clock doesn't count.

#include "actors/invocation.hpp"

#include <algorithm>

#include <caf/all.hpp>
#include <fmt/format.h>

#include "actors/errors.hpp"

namespace bulkhead {

using namespace std::chrono_literals;

namespace {

/// Between two messages of how far calls are.
constexpr auto progress_interval = 250ms;

std::string to_text(const tool_progress& progress) {
  auto text = progress.total > 0 ? fmt::format("{:g} of {:g}", progress.progress, progress.total)
                                 : fmt::format("{:g}", progress.progress);
  return progress.message.empty() ? text : fmt::format("{}, {}", text, progress.message);
}

} // namespace

/// The first is told at once; of those that follow too quickly, the latest when it is time.
void invocation_state::tell_progress(const tool_progress& progress) {
  auto is_it = [&](const auto& entry) { return entry.second.call == progress.call; };
  auto found = std::find_if(calls.begin(), calls.end(), is_it);
  if (found == calls.end() || now != phase::running || !request.observer) {
    return;
  }
  const auto& call = found->second;
  latest_progress = fmt::format("{}/{}: {}", call.to->brief.name, call.tool, to_text(progress));
  if (!live_due) {
    tell_latest_progress();
  }
}

void invocation_state::tell_latest_progress() {
  if (!latest_progress.empty()) {
    report(std::exchange(latest_progress, {}));
    live_due = true;
    self->delayed_send(self, progress_interval, tick_atom::value, run_atom::value);
  }
}

/// Only the server of a call that goes on may ask.
caf::result<std::string> invocation_state::pass_on(server_question& question) {
  auto asked_in = [&](const auto& entry) { return entry.second.call == question.call; };
  auto found = std::find_if(calls.begin(), calls.end(), asked_in);
  if (found == calls.end()) {
    return to_caf(errc::closed, "the call is over");
  }
  auto promise = self->make_response_promise<std::string>();
  auto number = ++last_question;
  asked.emplace(number, promise);
  ask_client(found->second.to->brief.name, std::move(question.method), std::move(question.params),
             [this, number](const expected<std::string>& result) {
               auto open = asked.extract(number);
               if (!open.empty()) {
                 result ? open.mapped().deliver(*result)
                        : open.mapped().deliver(to_caf(result.error()));
               }
             });
  return promise;
}

/// Asks the client, and the person in front of it, for whom the clock stands still meanwhile, for
/// `limits::question_time` in all. `then` is called once, also when the run is over by then.
void invocation_state::ask_client(std::string server, std::string method, std::string params,
                                  std::function<void(const expected<std::string>&)> then) {
  auto left = context.env->bounds.question_time - paused_so_far();
  if (now != phase::running) {
    then(fail(errc::closed, "the run is over"));
    return;
  }
  if (!request.observer) {
    then(fail(errc::unavailable, "this run has no client that could be asked"));
    return;
  }
  if (left <= 0s) {
    then(fail(errc::limit, fmt::format("the {} s for which a run may ask its client are used up",
                                       context.env->bounds.question_time.count())));
    return;
  }
  pause();
  self->request(request.observer, left + 1s,
                client_question{request.id, std::move(server), std::move(method), std::move(params),
                                deadline::at(self->clock().now() + left)})
      .then(
          [this, then](std::string& result) {
            go_on();
            then(std::move(result));
          },
          [this, then](const caf::error& reason) {
            go_on();
            then(tl::unexpected(from_caf(reason, "ask the client")));
          });
}

std::chrono::nanoseconds invocation_state::paused_so_far() const {
  return questions_open > 0 ? paused + (self->clock().now() - paused_since) : paused;
}

void invocation_state::pause() {
  if (questions_open++ == 0) {
    paused_since = self->clock().now();
  }
}

void invocation_state::go_on() {
  if (--questions_open > 0) {
    return;
  }
  auto rest = self->clock().now() - paused_since;
  paused += rest;
  if (now == phase::running) {
    due += rest;
    self->delayed_send<caf::message_priority::high>(self, time_left(), tick_atom::value);
  }
}

/// Whoever asked in one of the run's calls is told that it is over.
void invocation_state::withdraw_questions() {
  for (auto& [number, promise] : std::exchange(asked, {})) {
    promise.deliver(to_caf(errc::closed, "the run is over"));
  }
}

/// The code gave up on a call: it is answered, so that its place is free, and its server is told.
void invocation_state::cancel_call(std::uint64_t id) {
  auto found = calls.find(id);
  if (found != calls.end()) {
    self->send<caf::message_priority::high>(found->second.client, cancel_atom::value,
                                            found->second.call);
    return;
  }
  if (withdraw_approval(id)) {
    return;
  }
  for (auto& [name, to] : links) {
    auto is_it = [id](const guest_call& call) { return call.id == id; };
    if (std::erase_if(to.waiting, is_it) > 0) {
      refuse(id, {errc::cancelled, "the code gave up on the call"});
      return;
    }
  }
  if (open_calls.contains(id)) {
    // Something comes before the call is made.
    given_up.insert(id);
  }
}

} // namespace bulkhead
