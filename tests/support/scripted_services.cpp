#include "tests/support/scripted_services.hpp"

#include <caf/all.hpp>

namespace bulkhead::testing {

namespace {

caf::error not_scripted(std::string what) {
  return to_caf(errc::internal, "no script for " + std::move(what));
}

} // namespace

container_runtime_actor::behavior_type
scripted_runtime(container_runtime_actor::stateful_pointer<scripted_runtime_state> self,
                 std::shared_ptr<runtime_script> script) {
  return {
      [self, script](ensure_atom) { return script->ensure.ask(self); },
      [](probe_atom) -> caf::result<runtime_report> { return not_scripted("probe"); },
      [self, script](create_atom, const container_request& request,
                     const child_owner_actor& owner) {
        script->requests.push_back(request);
        if (script->creating) {
          script->creating(request, owner);
        }
        return script->create.ask(self);
      },
      [self, script](confine_atom, const container_handle&) { return script->confine.ask(self); },
      [self, script](classify_atom, const container_handle&, const child_exited& exit,
                     const std::string& diagnosis) {
        script->exits.push_back(exit);
        script->diagnoses.push_back(diagnosis);
        return script->classify.ask(self);
      },
      [self, script](stamp_atom) { return script->stamp.ask(self); },
      [self, script](destroy_atom, const container_handle& handle) {
        script->destroyed.push_back(handle);
        return script->destroy.ask(self);
      },
      [](sweep_atom) -> caf::result<sweep_report> { return not_scripted("sweep"); },
      [](stop_atom) { return caf::ok_atom::value; },
  };
}

volume_manager_actor::behavior_type
scripted_volumes(volume_manager_actor::stateful_pointer<scripted_volumes_state> self,
                 std::shared_ptr<volume_script> script) {
  return {
      [](prepare_atom) -> caf::result<instance_folders> { return not_scripted("prepare"); },
      [](grant_atom, std::uint32_t) -> caf::result<std::string> { return not_scripted("grant"); },
      [self, script](run_folder_atom, const std::string& id) {
        script->made.push_back(id);
        return script->run_folder.ask(self);
      },
      [self, script](discard_atom, const std::string& id) {
        script->discarded.push_back(id);
        return script->discard.ask(self);
      },
      [self, script](stop_atom) { return script->stop.ask(self); },
  };
}

} // namespace bulkhead::testing
