#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "actors/driver_context.hpp"
#include "actors/runtime_facts.hpp"
#include "protocol/container_rest.hpp"

namespace bulkhead {

/// How to reach a service of podman that answers.
struct rest_link {
  std::string socket;
  rest_targets targets;
  std::uint64_t number = 0; ///< counts the services that were reached, from 1
  /// The cgroup folders (v1) that it works in, where the OCI runtime makes those of its containers.
  std::vector<std::string> cgroups;
};

/// podman's REST service: the account's own where it answers, or one that this instance starts and
/// owns. It is looked for when it is first needed, and again after it was lost.
///
/// Its own lies in a folder of the instance (0700), in a cgroup (v1) that was delegated to the
/// account, and ends with this process, however that ends. The account's own isn't used where only
/// a delegated cgroup holds limits, unless CONTAINER_HOST names it; nor where a probe found that it
/// starts no sandbox.
///
/// While it serves containers or requests it is asked every few seconds whether it still answers.
/// One that doesn't is given up: it is killed if it is the instance's own, and what waits for it
/// ends as if it had died.
class rest_service {
public:
  explicit rest_service(driver_context& context) : context_{context} {}

  /// The service in use; finds or starts one if need be. All who ask meanwhile share it. Errors:
  /// unavailable, with the remedy.
  task<expected<rest_link>> ensure(const runtime_facts& facts);

  /// One exchange with the service of that number. Errors: see process_host_actor; after `closed`
  /// or `runtime_lost`, and when it answers nothing any more, the service counts as lost, and the
  /// next `ensure` finds another.
  task<expected<socket_answer>> call(std::uint64_t number, socket_request request,
                                     std::chrono::milliseconds budget);

  /// A container's stream comes from the service of that number, until it is released: it is ended
  /// if that service is given up.
  void hold_stream(std::uint64_t number, child_id stream) { streams_[stream] = number; }
  void release_stream(child_id stream) { streams_.erase(stream); }

  /// Bulkhead is about to end: no other service is looked for any more, and one that doesn't answer
  /// within about a second is given up.
  void hurry();

  bool connected() const { return current_.has_value(); }

  /// Forgets the account's own service, if that is the one in use; true if it was.
  bool leave_users_own();

  /// Is it still the one in use?
  bool is_current(std::uint64_t number) const { return current_ && current_->number == number; }

  /// podman 4.3's service ends in a fault of its own, or mistakes the account's sub-uids, when it
  /// makes several containers at the same time. Who makes one waits for its turn, and ends it.
  task<void> wait_for_turn();
  void end_turn();

  /// Did the kernel kill something in a container of the instance's own service in the last
  /// seconds? Its monitors note that in the service's folder; told once.
  bool take_out_of_memory_note();

  /// Events of the service's process; false when it isn't its.
  bool take(const child_output& output);
  bool take(const child_exited& exit);

  /// Ends the instance's own service with its cgroups.
  task<void> stop();

private:
  /// It answers within milliseconds; a busy machine may take a second.
  static constexpr std::chrono::milliseconds ping_budget{3000};

  task<expected<rest_link>> connect(const runtime_facts& facts);
  task<std::optional<rest_link>> find_users_own(const runtime_facts& facts);
  task<expected<rest_link>> start_own(const runtime_facts& facts);
  task<expected<rest_link>> wait_until_it_answers(std::string socket);
  task<expected<rest_targets>> ping(std::string socket, std::chrono::milliseconds budget);
  expected<process_spec> service_process(const runtime_facts& facts, const std::string& socket);
  std::string folder() const { return context_.folders.root + "/service"; }
  /// The service has gone, or answers no more.
  void lost(std::uint64_t number);
  /// The same where it is there and hangs.
  void give_up(std::uint64_t number);
  void end_calls(std::uint64_t number);
  task<void> watch(rest_link link);
  task<void> look_twice(rest_link link);

  driver_context& context_;
  std::optional<rest_link> current_;
  bool connecting_ = false;
  std::vector<std::function<void(expected<rest_link>)>> waiting_;
  std::uint64_t last_number_ = 0;
  bool ending_ = false;
  /// A request that the service of that number hasn't answered.
  struct open_call {
    std::uint64_t number;
    std::function<void(expected<socket_answer>)> done;
  };
  std::uint64_t last_call_ = 0;
  std::map<std::uint64_t, open_call> calls_;
  std::map<child_id, std::uint64_t> streams_; ///< and the numbers of their services
  bool making_ = false;
  std::deque<std::function<void(bool)>> turns_; ///< one for each sandbox that boots, at the most
  // The instance's own.
  child_id child_ = 0; ///< 0: none runs
  std::string complaint_;
  cgroup_name cgroup_; ///< of its cgroups
  std::vector<std::string> cgroups_;
  engine_profile engine_; ///< that it was started with
  task_set watches_;      ///< last: they use all of the above
};

} // namespace bulkhead
