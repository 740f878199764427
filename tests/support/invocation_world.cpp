#include "tests/support/invocation_world.hpp"

#include <caf/all.hpp>

#include "actors/errors.hpp"
#include "actors/tool_library.hpp"

namespace bulkhead::testing {

sandbox_actor::behavior_type
scripted_sandbox(sandbox_actor::stateful_pointer<scripted_sandbox_state> self,
                 std::shared_ptr<sandbox_log> log) {
  return {
      [](const child_output&) {},
      [](const child_written&) {},
      [](const child_exited&) {},
      [self, log](boot_atom) { return log->boot.ask(self); },
      [log](execute_atom, const sandbox_run& run, const sandbox_owner_actor&) {
        log->runs.push_back(run);
      },
      [log](credit_atom, std::uint32_t events) { log->credit += events; },
      [log](respond_atom, std::uint64_t call, const std::string& payload) {
        log->responses.emplace_back(call, payload);
      },
      [log](refuse_atom, std::uint64_t call, const error& reason) {
        log->refusals.emplace_back(call, reason);
      },
      [log](interrupt_atom) { ++log->interrupts; },
      [log](end_atom) { ++log->ends; },
  };
}

python_sessions_actor::behavior_type recording_sessions(python_sessions_actor::pointer,
                                                        std::shared_ptr<sessions_log> log) {
  return {
      [](lease_atom, const session_claim&) -> caf::result<session_lease> {
        return to_caf(errc::internal, "runs don't claim sessions");
      },
      [log](taken_atom) { ++log->begun; },
      [log](release_atom, const std::string& handle, std::uint64_t lease,
            const sandbox_actor& sandbox) {
        log->released.push_back({handle, lease, sandbox != nullptr});
      },
      [](status_atom) { return std::vector<session_status>{}; },
  };
}

mcp_client_actor::behavior_type
scripted_client(mcp_client_actor::stateful_pointer<scripted_client_state> self,
                std::shared_ptr<client_script> script) {
  return {
      [self, script](documents_atom, deadline due) {
        script->deadlines.push_back(due);
        return script->documents.ask(self);
      },
      [self, script](call_atom, const tool_call& call) {
        script->calls.push_back(call);
        // Else the record would hold the result's memory.
        script->calls.back().room = {};
        if (script->call_hook) {
          script->call_hook(call);
        }
        return script->call.ask(self);
      },
      [script](cancel_atom, std::uint64_t call) { script->cancelled.push_back(call); },
      [](status_atom) { return client_status{}; },
      [](stop_atom) { return caf::ok_atom::value; },
  };
}

client_registry_actor::behavior_type
scripted_registry(client_registry_actor::stateful_pointer<scripted_registry_state> self,
                  std::shared_ptr<registry_script> script) {
  return {
      [self, script](catalogue_atom) { return script->catalogue.ask(self); },
      [script](client_atom, const std::string& server) -> caf::result<mcp_client_actor> {
        script->asked.push_back(server);
        auto found = script->clients.find(server);
        if (found == script->clients.end()) {
          return to_caf(errc::not_found, "no server " + server);
        }
        return found->second;
      },
      [](catalogue_atom, const catalogue_ptr&) {},
      [](status_atom) { return std::vector<client_status>{}; },
      [self, script](stop_atom) { return script->stop.ask(self); },
  };
}

tool_library_actor::behavior_type
scripted_library(tool_library_actor::stateful_pointer<scripted_library_state> self,
                 std::shared_ptr<library_script> script) {
  return {
      [](documents_atom, const catalogue_ptr&, const documents_ptr& documents) {
        return tool_shelf_ptr{std::make_shared<tool_shelf>(documents)};
      },
      [self, script](const tool_question& question) {
        const auto& call = question.call;
        script->asked.push_back(call.kind == guest_call_kind::search_tool_docs ? call.query
                                                                               : call.tool);
        return script->answers.ask(self);
      },
  };
}

output_observer_actor::behavior_type
scripted_observer(output_observer_actor::stateful_pointer<scripted_observer_state> self,
                  std::shared_ptr<observer_script> script) {
  return {
      [self, script](const guest_output& output) {
        script->outputs.push_back(output);
        return script->dealt_with.ask(self);
      },
  };
}

} // namespace bulkhead::testing
