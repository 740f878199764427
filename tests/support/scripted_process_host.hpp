#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include "actors/interfaces.hpp"

namespace bulkhead::testing {

/// A child that exists in a script only. Copies speak of the same child.
class scripted_child {
public:
  scripted_child(child_id id, process_spec spec, child_owner_actor owner)
      : id_{id}, spec_{std::move(spec)}, owner_{std::move(owner)} {}

  child_id id() const { return id_; }
  const process_spec& spec() const { return spec_; }
  const child_owner_actor& owner() const { return owner_; }
  bool alive() const { return *alive_; }

  /// Writes a line, its end added, to stdout.
  void line(std::string text) const;
  void out(std::string bytes) const;
  void err(std::string bytes) const;
  void exit(std::int32_t code, std::int32_t signal = 0) const;

private:
  void write(stream_id stream, std::string bytes) const;

  child_id id_;
  process_spec spec_;
  child_owner_actor owner_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

/// What scripted children do, and what was asked of them. Shared by test and actor: only for the
/// deterministic scheduler, or for one actor thread.
struct process_script {
  // What happens. A function that is empty does nothing, unless it says otherwise.

  /// An error refuses the start.
  std::function<std::optional<error>(const process_spec&)> refuse;
  /// Never answers a spawn request.
  bool spawn_hangs = false;
  std::function<void(const scripted_child&)> started;
  /// A complete line on the child's stdin, without its end.
  std::function<void(const scripted_child&, std::string_view line)> line;
  /// stdin was closed; empty: the child exits with code 0.
  std::function<void(const scripted_child&)> input_closed;
  /// Empty: the child is killed by it.
  std::function<void(const scripted_child&, std::int32_t signal)> signalled;
  /// The child doesn't read its stdin: nothing is reported as written, no line arrives.
  bool input_blocked = false;

  // What happened.

  std::vector<scripted_child> children;
  std::map<child_id, std::string> input; ///< all bytes written to a child
  std::vector<std::pair<child_id, std::int32_t>> signals;
  std::vector<child_id> closed_inputs;
  std::vector<std::string> killed_marks;
  std::map<std::pair<child_id, stream_id>, std::uint64_t> credit;

  /// The lines written to a child.
  std::vector<std::string> lines_of(child_id id) const;
};

struct scripted_process_host_state {
  explicit scripted_process_host_state(process_host_actor::pointer self) : self{self} {}
  process_host_actor::behavior_type make_behavior();

  const scripted_child* find(child_id id) const;
  void deliver(const scripted_child& child, const std::string& bytes);

  process_host_actor::pointer self;
  std::shared_ptr<process_script> script;
  std::map<child_id, std::string> partial; ///< of the line being written

  static inline const char* name = "scripted-process-host";
};

/// A process host without processes.
process_host_actor::behavior_type
scripted_process_host(process_host_actor::stateful_pointer<scripted_process_host_state> self,
                      std::shared_ptr<process_script> script);

} // namespace bulkhead::testing
