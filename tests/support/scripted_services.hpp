#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <caf/typed_response_promise.hpp>

#include "actors/errors.hpp"
#include "actors/interfaces.hpp"

/// A container driver and a volume manager whose answers the test decides. Only for the
/// deterministic scheduler.

namespace bulkhead::testing {

/// Answers requests of one kind: at once with `answer`, or, while `held`, when the test says so.
template <class T>
struct gate {
  expected<T> answer{};
  bool held = false;
  std::size_t asked = 0;
  std::vector<caf::typed_response_promise<T>> pending;
  caf::local_actor* answering = nullptr;

  template <class Actor>
  caf::result<T> ask(Actor* self) {
    ++asked;
    answering = self;
    auto promise = self->template make_response_promise<T>();
    pending.push_back(promise);
    if (!held) {
      release();
    }
    return promise;
  }

  /// Answers all that waits.
  void release() {
    if (answering != nullptr) {
      // The test isn't a worker, and the worker that ran the actor last is gone.
      answering->context(nullptr);
    }
    for (auto& promise : std::exchange(pending, {})) {
      answer ? promise.deliver(*answer) : promise.deliver(to_caf(answer.error()));
    }
  }

  void refuse_with(errc code, std::string message) {
    answer = tl::unexpected{error{code, std::move(message)}};
  }
};

/// What the driver answers, and what it was asked.
struct runtime_script {
  gate<container_handle> create;
  gate<caf::ok_atom> confine;
  gate<exit_verdict> classify;
  gate<caf::ok_atom> destroy;
  gate<std::string> stamp;
  gate<runtime_report> ensure;

  /// A container is being made; comes before the answer.
  std::function<void(const container_request&, const child_owner_actor&)> creating;

  std::vector<container_request> requests;
  std::vector<child_exited> exits;
  std::vector<std::string> diagnoses;
  std::vector<container_handle> destroyed;
};

struct scripted_runtime_state {
  explicit scripted_runtime_state(container_runtime_actor::pointer) {}
  static inline const char* name = "scripted-runtime";
};

container_runtime_actor::behavior_type
scripted_runtime(container_runtime_actor::stateful_pointer<scripted_runtime_state> self,
                 std::shared_ptr<runtime_script> script);

struct volume_script {
  gate<std::string> run_folder;
  gate<caf::ok_atom> discard;
  gate<caf::ok_atom> stop;

  std::vector<std::string> made;      ///< ids of run folders asked for
  std::vector<std::string> discarded; ///< ids of run folders given back
};

struct scripted_volumes_state {
  explicit scripted_volumes_state(volume_manager_actor::pointer) {}
  static inline const char* name = "scripted-volumes";
};

volume_manager_actor::behavior_type
scripted_volumes(volume_manager_actor::stateful_pointer<scripted_volumes_state> self,
                 std::shared_ptr<volume_script> script);

} // namespace bulkhead::testing
