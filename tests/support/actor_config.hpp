#pragma once

#include <caf/actor_system_config.hpp>

#include "actors/interfaces.hpp"

namespace bulkhead::testing {

/// An actor system that knows the messages of every interface.
struct actor_config : caf::actor_system_config {
  actor_config() {
    add_message_types<caf::id_block::bulkhead>();
    add_message_types<caf::id_block::bulkhead_handles>();
  }
};

} // namespace bulkhead::testing
