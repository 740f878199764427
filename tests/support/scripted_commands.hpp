#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <caf/typed_response_promise.hpp>

#include "actors/interfaces.hpp"
#include "tests/support/scripted_process_host.hpp"

namespace bulkhead::testing {

/// What short commands answer and what children do, for tests of the container driver. Only for the
/// deterministic scheduler.
struct command_script {
  /// The answer to a command; an error stands for a command that was killed at its deadline.
  std::function<expected<finished_process>(const process_spec&)> command;
  /// An error refuses the start.
  std::function<std::optional<error>(const process_spec&)> refuse;
  std::function<void(const scripted_child&)> started;
  /// A write to a child's stdin.
  std::function<void(const scripted_child&, const std::string&)> written;
  std::function<void(const scripted_child&, std::int32_t signal)> signalled;

  /// What a service answers; empty: there is none.
  std::function<expected<socket_answer>(const socket_request&)> answer;
  /// The service takes requests and never answers them.
  bool silent = false;
  /// An error refuses to attach; else the stream is a child whose argv is "attach" and the target.
  std::function<std::optional<error>(const stream_request&)> refuse_stream;

  // What happened.
  std::vector<std::vector<std::string>> commands;
  std::vector<std::string> requests;                        ///< method and target
  std::vector<std::pair<std::string, deadline>> unanswered; ///< targets of the silent service
  std::vector<scripted_child> children;
  std::vector<std::string> killed_marks;

  /// Commands whose words, joined by blanks, hold `text`.
  std::size_t count(std::string_view text) const;
};

struct scripted_commands_state {
  explicit scripted_commands_state(process_host_actor::pointer self) : self{self} {}
  process_host_actor::behavior_type make_behavior();
  const scripted_child* find(child_id id) const;

  process_host_actor::pointer self;
  std::shared_ptr<command_script> script;
  std::vector<caf::typed_response_promise<socket_answer>> unanswered;

  static inline const char* name = "scripted-commands";
};

process_host_actor::behavior_type
scripted_commands(process_host_actor::stateful_pointer<scripted_commands_state> self,
                  std::shared_ptr<command_script> script);

} // namespace bulkhead::testing
