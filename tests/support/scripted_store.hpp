#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include "actors/interfaces.hpp"
#include "tests/support/scripted_services.hpp"

namespace bulkhead::testing {

/// A store that keeps what comes in memory. Only for the deterministic scheduler.
struct store_script {
  gate<kept_bytes> append; ///< unless it refuses or has a cause, the count of bytes is right
  gate<std::string> save;
  gate<caf::ok_atom> seal;
  gate<resource_part> read;
  gate<resource_page> list;

  std::map<stream_id, std::string> streams;
  std::vector<guest_artifact> artifacts;
  std::vector<stored_run> runs; ///< of each request that keeps something
  std::vector<std::pair<std::uint64_t, std::uint64_t>> sealed;
  std::vector<resource_range> ranges;
  std::vector<std::pair<std::string, std::string>> lists; ///< owner and cursor
};

struct scripted_store_state {
  explicit scripted_store_state(artifact_store_actor::pointer) {}
  static inline const char* name = "scripted-store";
};

artifact_store_actor::behavior_type
scripted_store(artifact_store_actor::stateful_pointer<scripted_store_state> self,
               std::shared_ptr<store_script> script);

} // namespace bulkhead::testing
