#include "tests/support/scripted_store.hpp"

#include <caf/all.hpp>

namespace bulkhead::testing {

artifact_store_actor::behavior_type
scripted_store(artifact_store_actor::stateful_pointer<scripted_store_state> self,
               std::shared_ptr<store_script> script) {
  return {
      [self, script](append_atom, const stored_run& run, stream_id stream,
                     const std::string& bytes) {
        script->runs.push_back(run);
        auto& all = script->streams[stream] += bytes;
        if (script->append.answer && script->append.answer->why.empty()) {
          script->append.answer->bytes = all.size();
        }
        return script->append.ask(self);
      },
      [self, script](save_atom, const stored_run& run, const guest_artifact& artifact) {
        script->runs.push_back(run);
        script->artifacts.push_back(artifact);
        return script->save.ask(self);
      },
      [self, script](seal_atom, const stored_run& run, std::uint64_t out, std::uint64_t err) {
        script->runs.push_back(run);
        script->sealed.emplace_back(out, err);
        return script->seal.ask(self);
      },
      [self, script](read_atom, const resource_range& range) {
        script->ranges.push_back(range);
        return script->read.ask(self);
      },
      [self, script](list_atom, const std::string& owner, const std::string& cursor) {
        script->lists.emplace_back(owner, cursor);
        return script->list.ask(self);
      },
  };
}

} // namespace bulkhead::testing
