#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "tests/support/fake_cgroups.hpp"
#include "tests/support/scripted_commands.hpp"

namespace bulkhead::testing {

/// A container of the fake engine.
struct fake_container {
  std::string name;
  std::string instance;
  std::string cid;
  std::string source; ///< of the mount at /ipc
  child_id child = 0;
  bool running = true;
};

/// podman and docker as the driver sees them: what their commands answer, and the folders that they
/// and the OCI runtime keep for each container (below `root`).
class fake_engine {
public:
  explicit fake_engine(std::shared_ptr<fake_cgroups> cgroups) : cgroups_{std::move(cgroups)} {}

  /// Puts itself behind the script.
  void serve(command_script& script);

  struct refusal {
    std::int32_t code = 126;
    std::string err;
  };

  std::string root; ///< a temporary folder
  std::string version = "4.3.1";
  bool image = true;
  std::string image_id = std::string(64, 'a');
  std::string driver = "overlay";
  std::string uid_map = "0 999 1\n1 100000 65536\n";
  std::string docker_info = "20.10.24|2|runc|[\"name=seccomp,profile=default\"]";
  std::map<std::string, refusal> failing;  ///< by the first words of a command, e.g. "info"
  std::map<std::string, refusal> refusing; ///< OCI runtimes that refuse this host, by name
  bool refuse_limits = false;              ///< refuses --memory for want of a controller
  nlohmann::json limits;                   ///< the probe's answer to "limits"; null: as asked
  nlohmann::json facts;                    ///< the probe's answer to "facts"
  std::uint64_t threads = 62;              ///< that the pids limit lets it start
  bool survives_memory = false;
  bool processes_lost = false; ///< every command of podman fails until `system migrate`
  int failing_removals = 0;    ///< so many `rm` fail before one works
  bool hanging_removals = false;
  bool oom_killed = false; ///< docker's OOMKilled
  std::string oci_list = "null";
  std::function<void(const std::string& cid)> started; ///< a container has; may be empty

  std::map<std::string, fake_container> containers;

  std::string storage() const { return root + "/store/overlay-containers"; }
  std::string oci_root(const std::string& name) const { return root + "/xdg/" + name; }

  /// The command line's process ends; with `removed`, the container was removed by --rm.
  void end(command_script& script, const std::string& name, std::int32_t code, bool removed = true);

private:
  expected<finished_process> command(command_script& script, const process_spec& spec);
  finished_process podman_command(command_script& script, const std::vector<std::string>& words);
  finished_process remove(command_script& script, const std::string& name);
  void start(const scripted_child& child);
  void answer(command_script& script, const scripted_child& child, std::string line);
  void forget(const fake_container& container);
  std::string name_of(child_id child) const;

  std::shared_ptr<fake_cgroups> cgroups_;
};

/// The word after `flag`, or empty.
std::string value_of(const std::vector<std::string>& argv, std::string_view flag);

} // namespace bulkhead::testing
