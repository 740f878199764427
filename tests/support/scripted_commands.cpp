#include "tests/support/scripted_commands.hpp"

#include <algorithm>

#include <caf/all.hpp>
#include <fmt/format.h>

#include "actors/errors.hpp"

namespace bulkhead::testing {

std::size_t command_script::count(std::string_view text) const {
  return static_cast<std::size_t>(
      std::count_if(commands.begin(), commands.end(), [&](const auto& argv) {
        return fmt::format("{}", fmt::join(argv, " ")).find(text) != std::string::npos;
      }));
}

const scripted_child* scripted_commands_state::find(child_id id) const {
  return id > 0 && id <= script->children.size() ? &script->children[id - 1] : nullptr;
}

process_host_actor::behavior_type scripted_commands_state::make_behavior() {
  return {
      [this](spawn_atom, process_spec& spec,
             const child_owner_actor& owner) -> caf::result<child_started> {
        if (auto reason = script->refuse ? script->refuse(spec) : std::nullopt) {
          return to_caf(*reason);
        }
        auto promise = self->make_response_promise<child_started>();
        auto id = static_cast<child_id>(script->children.size() + 1);
        script->children.emplace_back(id, std::move(spec), owner);
        promise.deliver(child_started{id, static_cast<std::int32_t>(1000 + id)});
        if (script->started) {
          script->started(scripted_child{script->children.back()});
        }
        return promise;
      },
      [this](write_atom, child_id id, const std::string& bytes) {
        const auto* child = find(id);
        if (child != nullptr && script->written) {
          script->written(scripted_child{*child}, bytes);
        }
      },
      [](close_input_atom, child_id) {},
      [this](signal_atom, child_id id, std::int32_t signal) {
        const auto* child = find(id);
        if (child != nullptr && child->alive() && script->signalled) {
          script->signalled(scripted_child{*child}, signal);
        }
      },
      [](credit_atom, child_id, stream_id, std::uint64_t) {},
      [this](command_atom, const process_spec& spec, const std::string&,
             deadline) -> caf::result<finished_process> {
        script->commands.push_back(spec.argv);
        auto answer = script->command(spec);
        return answer ? caf::result<finished_process>{std::move(*answer)}
                      : caf::result<finished_process>{to_caf(answer.error())};
      },
      [this](call_atom, const socket_request& request, deadline due) -> caf::result<socket_answer> {
        script->requests.push_back(request.method + " " + request.target);
        if (script->silent) {
          script->unanswered.emplace_back(request.target, due);
          unanswered.push_back(self->make_response_promise<socket_answer>());
          return unanswered.back();
        }
        auto answer = script->answer
                          ? script->answer(request)
                          : expected<socket_answer>{fail(errc::closed, "nobody listens")};
        return answer ? caf::result<socket_answer>{std::move(*answer)}
                      : caf::result<socket_answer>{to_caf(answer.error())};
      },
      [this](attach_atom, stream_request& request,
             const child_owner_actor& owner) -> caf::result<child_started> {
        if (auto reason = script->refuse_stream ? script->refuse_stream(request) : std::nullopt) {
          return to_caf(*reason);
        }
        auto id = static_cast<child_id>(script->children.size() + 1);
        process_spec spec;
        spec.argv = {"attach", request.attach};
        script->children.emplace_back(id, std::move(spec), owner);
        return child_started{id, 0};
      },
      [this](kill_marked_atom, const std::string& mark) -> caf::result<std::uint32_t> {
        script->killed_marks.push_back(mark);
        return std::uint32_t{1};
      },
  };
}

process_host_actor::behavior_type
scripted_commands(process_host_actor::stateful_pointer<scripted_commands_state> self,
                  std::shared_ptr<command_script> script) {
  self->state.script = std::move(script);
  return self->state.make_behavior();
}

} // namespace bulkhead::testing
