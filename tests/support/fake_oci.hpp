#pragma once

#include <map>
#include <memory>
#include <string>

#include <nlohmann/json.hpp>

#include "tests/support/fake_engine.hpp"

namespace bulkhead::testing {

/// crun and runc without an engine, and what the driver has podman do for them, as the driver sees
/// them: folders below the engine's `root`. All else is left to the engine.
class fake_oci {
public:
  fake_oci(fake_engine& engine, std::shared_ptr<fake_cgroups> cgroups)
      : engine_{engine}, cgroups_{std::move(cgroups)} {}

  /// Puts itself before the engine, which is behind the script already.
  void serve(command_script& script);

  struct container {
    std::string folder;
    std::string id;
    pid_t pid = 0;
    bool running = true;
  };

  std::map<std::string, std::string> refusing; ///< what runtimes that refuse say, by name
  std::string unpack_failure;                  ///< what tar says; empty: it works
  std::string hold_failure;                    ///< what mount says
  bool without_inner_cgroup = false;
  bool starts_hang = false; ///< the runtime has made the container, and hangs
  std::map<child_id, container> containers;
  pid_t holder = 0;
  int holders = 0; ///< that were started
  int unpacked = 0;

  /// The container's program ends, and with it the child.
  void end(command_script& script, child_id child, std::int32_t code, std::int32_t signal = 0);
  void kill_holder();
  /// The kernel has killed so often in the cgroup of this path.
  void count_kills(const std::string& cgroup, int times);
  static nlohmann::json config_of(const container& of);
  std::string cgroup_of(const container& of) const;

private:
  std::optional<finished_process> command(const process_spec& spec);
  bool start(const scripted_child& child);
  void answer(command_script& script, const scripted_child& child, const std::string& line);
  std::string process_folder(pid_t pid) const;
  void make_process(pid_t pid) const;
  bool v2() const;

  fake_engine& engine_;
  std::shared_ptr<fake_cgroups> cgroups_;
};

} // namespace bulkhead::testing
