#include "session_world.hpp"

#include <utility>

#include <caf/all.hpp>
#include <spdlog/sinks/null_sink.h>

#include "actors/errors.hpp"
#include "actors/python_sessions.hpp"

namespace bulkhead::testing {

namespace {

struct scripted_run_state {
  explicit scripted_run_state(scripted_run_actor::pointer) {}
  static inline const char* name = "scripted-run";
};

scripted_run_actor::behavior_type
scripted_invocation(scripted_run_actor::stateful_pointer<scripted_run_state> self,
                    std::shared_ptr<scripted_run> run) {
  return {
      [](const sandbox_up&) {},
      [](const guest_output&) {},
      [](const guest_call&) {},
      [](const guest_cancel&) {},
      [](const refused_call&) {},
      [](const guest_artifact&) {},
      [](const guest_done&) {},
      [](const sandbox_lost&) {},
      [](const tool_progress&) {},
      [](const server_question& question) -> caf::result<std::string> {
        return to_caf(errc::unavailable, question.method);
      },
      [self, run](run_atom) {
        run->began = true;
        run->promise = self->make_response_promise<run_answer>();
        return run->promise;
      },
      [run](cancel_atom) { run->cancelled = true; },
      [run](end_atom, const run_answer& answer) { run->promise.deliver(answer); },
  };
}

} // namespace

admission_actor::behavior_type
scripted_admission(admission_actor::stateful_pointer<scripted_admission_state> self,
                   std::shared_ptr<admission_script> script) {
  return {
      [self, script](admit_atom, const std::string&, deadline due) {
        script->deadlines.push_back(due);
        auto promise = self->make_response_promise<std::uint64_t>();
        if (script->overloaded) {
          promise.deliver(to_caf(errc::overloaded, "64 runs wait already; try again later"));
        } else if (script->given.size() < script->places) {
          script->given.push_back(script->given.size() + 1);
          promise.deliver(script->given.back());
        } else {
          self->state.waiting.push_back(promise);
        }
        return promise;
      },
      [self, script](release_atom, std::uint64_t ticket) {
        script->released.push_back(ticket);
        if (!self->state.waiting.empty()) {
          auto promise = self->state.waiting.front();
          self->state.waiting.erase(self->state.waiting.begin());
          script->given.push_back(script->given.size() + 1);
          promise.deliver(script->given.back());
        }
      },
  };
}

front_end_actor::behavior_type recording_front_end(front_end_actor::pointer,
                                                   std::shared_ptr<written_messages> log) {
  return {
      [log](message_atom, const std::string& message) {
        log->messages.push_back(nlohmann::json::parse(message));
        log->requests.emplace_back(nullptr);
      },
      [log](message_atom, const std::string& request, const std::string& message) {
        log->messages.push_back(nlohmann::json::parse(message));
        log->requests.push_back(nlohmann::json::parse(request));
      },
      [](line_atom, const std::string&) {},
      [](line_atom) {},
      [](credit_atom, std::uint64_t) {},
      [](input_end_atom) {},
      [](drained_atom) {},
      [](stop_atom) { return caf::ok_atom::value; },
  };
}

std::shared_ptr<environment> test_environment() {
  auto env = std::make_shared<environment>();
  env->instance = "0123456789abcdef";
  env->new_handle = [serial = 0]() mutable { return "run-" + std::to_string(++serial); };
  env->next_serial = [serial = std::uint64_t{0}]() mutable { return ++serial; };
  env->wall_clock = [] { return std::chrono::system_clock::time_point{}; };
  env->variable = [](std::string_view) { return std::nullopt; };
  env->budget = std::make_shared<memory_budget>(env->bounds.memory_budget);
  env->log =
      std::make_shared<spdlog::logger>("test", std::make_shared<spdlog::sinks::null_sink_mt>());
  return env;
}

session_context scripted_context(caf::actor_system& system, environment_ptr env,
                                 std::shared_ptr<scripted_runs> runs,
                                 std::shared_ptr<admission_script> admission,
                                 catalogue_ptr catalogue) {
  auto start = [&system, runs](const run_request& request) {
    auto run = std::make_shared<scripted_run>();
    run->request = request;
    runs->push_back(run);
    run->actor = system.spawn(scripted_invocation, run);
    return invocation_actor{run->actor};
  };
  python_sessions_actor sessions = system.spawn(python_sessions, env);
  return {std::move(env), system.spawn(scripted_admission, admission),
          [sessions] { return sessions; }, [catalogue = std::move(catalogue)] { return catalogue; },
          start};
}

} // namespace bulkhead::testing
