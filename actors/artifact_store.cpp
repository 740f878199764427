#include "actors/artifact_store.hpp"

#include <utility>

#include <caf/all.hpp>

#include "actors/errors.hpp"

namespace bulkhead {

namespace {

/// A thing that is too old is no longer told of; this is for the room it takes.
constexpr std::chrono::minutes sweep_interval{10};

template <class T>
caf::result<T> answer(expected<T> result) {
  return result ? caf::result<T>{std::move(*result)} : caf::result<T>{to_caf(result.error())};
}

} // namespace

artifact_store_state::artifact_store_state(artifact_store_impl_actor::pointer self) : self{self} {}

void artifact_store_state::watch(const stored_run& run) {
  auto sender = caf::actor_cast<caf::actor_addr>(self->current_sender());
  if (sender && writers.emplace(run.handle, sender).second) {
    self->monitor(sender);
  }
}

void artifact_store_state::lost(const caf::actor_addr& writer) {
  for (auto each = writers.begin(); each != writers.end();) {
    if (each->second == writer) {
      folder->discard(each->first);
      each = writers.erase(each);
    } else {
      ++each;
    }
  }
}

void artifact_store_state::sweep() {
  if (auto swept = folder->sweep(); !swept) {
    env->log->warn("what runs left can't be looked through: {}", swept.error().message);
  }
  self->delayed_send(self, sweep_interval, tick_atom::value);
}

artifact_store_impl_actor::behavior_type artifact_store_state::make_behavior() {
  self->set_down_handler([this](const caf::down_msg& down) { lost(down.source); });
  self->send(self, tick_atom::value);
  return {
      [this](append_atom, const stored_run& run, stream_id stream, const std::string& bytes) {
        watch(run);
        return folder->append(run, stream, bytes);
      },
      [this](save_atom, const stored_run& run, const guest_artifact& artifact) {
        watch(run);
        return answer(folder->save(run, artifact));
      },
      [this](seal_atom, const stored_run& run, std::uint64_t out_total,
             std::uint64_t err_total) -> caf::result<caf::ok_atom> {
        if (auto writer = writers.extract(run.handle)) {
          self->demonitor(writer.mapped());
        }
        if (auto sealed = folder->seal(run, out_total, err_total); !sealed) {
          return to_caf(sealed.error());
        }
        return caf::ok_atom::value;
      },
      [this](read_atom, const resource_range& range) {
        return answer(folder->read(range, env->bounds.resource_part));
      },
      [this](list_atom, const std::string& owner, const std::string& cursor) {
        return answer(folder->list(owner, cursor));
      },
      [this](tick_atom) { sweep(); },
  };
}

artifact_store_impl_actor::behavior_type
artifact_store(artifact_store_impl_actor::stateful_pointer<artifact_store_state> self,
               environment_ptr env) {
  artifact_folder::rules rules;
  rules.root = env->config->state_dir + "/artifacts";
  rules.quota = env->config->artifacts;
  rules.spill = env->config->spill;
  rules.now = env->wall_clock;
  self->state.folder.emplace(std::move(rules));
  self->state.env = std::move(env);
  return self->state.make_behavior();
}

} // namespace bulkhead
