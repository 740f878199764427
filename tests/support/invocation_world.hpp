#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include "actors/interfaces.hpp"
#include "tests/support/scripted_services.hpp"

/// What surrounds an invocation, scripted. Only for the deterministic scheduler.

namespace bulkhead::testing {

/// What a sandbox was asked.
struct sandbox_log {
  std::vector<sandbox_run> runs;
  std::uint32_t credit = 0; ///< events acknowledged
  std::vector<std::pair<std::uint64_t, std::string>> responses;
  std::vector<std::pair<std::uint64_t, error>> refusals;
  gate<caf::ok_atom> boot;
  int interrupts = 0;
  int ends = 0;
};

/// What the sessions were told by a run that is over.
struct sessions_log {
  struct left {
    std::string handle;
    std::uint64_t lease = 0;
    bool kept = false; ///< the interpreter lives on
  };
  std::vector<left> released;
  int begun = 0;
};

python_sessions_actor::behavior_type recording_sessions(python_sessions_actor::pointer self,
                                                        std::shared_ptr<sessions_log> log);

struct scripted_sandbox_state {
  explicit scripted_sandbox_state(sandbox_actor::pointer) {}
  static inline const char* name = "scripted-sandbox";
};

sandbox_actor::behavior_type
scripted_sandbox(sandbox_actor::stateful_pointer<scripted_sandbox_state> self,
                 std::shared_ptr<sandbox_log> log);

/// One upstream server: what its client answers, and what it was asked.
struct client_script {
  gate<documents_ptr> documents;
  gate<std::string> call;
  std::function<void(const tool_call&)> call_hook; ///< before a call is answered

  std::vector<deadline> deadlines; ///< of the requests for documents
  std::vector<tool_call> calls;
  std::vector<std::uint64_t> cancelled;
};

struct scripted_client_state {
  explicit scripted_client_state(mcp_client_actor::pointer) {}
  static inline const char* name = "scripted-client";
};

mcp_client_actor::behavior_type
scripted_client(mcp_client_actor::stateful_pointer<scripted_client_state> self,
                std::shared_ptr<client_script> script);

struct registry_script {
  gate<catalogue_ptr> catalogue;
  gate<caf::ok_atom> stop;
  std::map<std::string, mcp_client_actor> clients; ///< others are not found
  std::vector<std::string> asked;
};

struct scripted_registry_state {
  explicit scripted_registry_state(client_registry_actor::pointer) {}
  static inline const char* name = "scripted-registry";
};

client_registry_actor::behavior_type
scripted_registry(client_registry_actor::stateful_pointer<scripted_registry_state> self,
                  std::shared_ptr<registry_script> script);

/// A library whose answers the test decides.
struct library_script {
  gate<std::string> answers;
  std::vector<std::string> asked; ///< the queries, or tools
};

struct scripted_library_state {
  explicit scripted_library_state(tool_library_actor::pointer) {}
  static inline const char* name = "scripted-library";
};

tool_library_actor::behavior_type
scripted_library(tool_library_actor::stateful_pointer<scripted_library_state> self,
                 std::shared_ptr<library_script> script);

struct scripted_observer_state {
  explicit scripted_observer_state(output_observer_actor::pointer) {}
  static inline const char* name = "scripted-observer";
};

/// Whoever wants the output; `dealt_with` answers it.
struct observer_script {
  gate<caf::ok_atom> dealt_with;
  std::vector<guest_output> outputs;
};

output_observer_actor::behavior_type
scripted_observer(output_observer_actor::stateful_pointer<scripted_observer_state> self,
                  std::shared_ptr<observer_script> script);

} // namespace bulkhead::testing
