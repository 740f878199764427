#include "actors/container_launch.hpp"

#include <algorithm>
#include <filesystem>

#include "actors/engine_errors.hpp"
#include "actors/gvisor.hpp"
#include "actors/oci_bundle.hpp"
#include "actors/oci_namespaces.hpp"

namespace bulkhead {

expected<container_spec> plan_container(const driver_context& context, const std::string& id,
                                        const std::string& folder, const cgroup_limits& limits,
                                        std::vector<std::string> command) {
  const auto& config = *context.env->config;
  container_spec spec;
  spec.name = container_name(id);
  spec.image = config.image;
  spec.instance = context.env->instance;
  spec.uid = config.container_uid;
  spec.gid = config.container_gid;
  spec.memory = limits.memory;
  spec.pids = limits.pids;
  spec.cpus = limits.cpus;
  spec.seccomp_profile = context.folders.seccomp_profile;
  spec.cid_file = folder + "/cid";
  spec.mounts = {{context.folders.ipc, "/ipc", true},
                 {context.folders.projects, "/projects", false}};
  spec.command = std::move(command);
  if (auto good = check_container_spec(spec); !good) {
    return tl::unexpected{good.error()};
  }
  return spec;
}

cgroup_limits configured_limits(const settings& config) {
  return {config.memory, config.pids, config.cpus};
}

task<expected<void>> ready_to_launch(driver_context& context, const runtime_facts& facts) {
  if (!facts.oci) {
    co_return expected<void>{};
  }
  auto held = co_await hold_namespaces(context, facts);
  co_return held;
}

expected<container_launch> prepare_launch(driver_context& context, const runtime_facts& facts,
                                          const std::string& id, const std::string& folder,
                                          const cgroup_limits& limits,
                                          std::vector<std::string> command) {
  auto plan = plan_container(context, id, folder, limits, std::move(command));
  if (!plan) {
    return tl::unexpected{plan.error()};
  }
  const auto& spec = *plan;
  container_launch result;
  result.limits = limits;
  if (facts.oci) {
    auto argv = write_bundle(context, facts, spec, folder);
    if (!argv) {
      return tl::unexpected{argv.error()};
    }
    result.process.argv = std::move(*argv);
    result.process.successor_file = pid_file(folder);
  } else {
    result.process.argv = run_arguments(facts.engine, spec);
  }
  if (facts.engine.engine == container_engine::docker) {
    // Only a container that is still there can be asked whether it ran out of memory.
    std::erase(result.process.argv, "--rm");
  }
  result.process.env = context.engine_environment();
  result.process.cwd = folder;
  result.process.kill_group_at_exit = false;
  auto cgroups = make_run_cgroups(*context.host.cgroups, facts.cgroup_bases,
                                  cgroup_named(context.env->instance, id),
                                  facts.gvisor ? with_room_for_gvisor(limits) : limits);
  if (!cgroups) {
    return tl::unexpected{cgroups.error()};
  }
  result.process.cgroups = *cgroups;
  result.handle.id = id;
  result.handle.name = spec.name;
  result.handle.folder = folder;
  result.handle.cgroups = std::move(*cgroups);
  return result;
}

error explain_start_failure(const driver_context& context, const runtime_facts& facts,
                            std::int32_t exit_code, std::string_view err) {
  return facts.oci ? explain_oci_failure("start a sandbox", facts.report.oci_runtime, context.host,
                                         exit_code, err)
                   : explain_engine_failure("start a sandbox", facts.engine, context.host,
                                            exit_code, err);
}

std::string read_container_id(const std::string& folder) {
  auto text = read_small_file(folder + "/cid").value_or("");
  text.erase(std::remove(text.begin(), text.end(), '\n'), text.end());
  bool good = text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string::npos;
  return good ? text : std::string{};
}

bool out_of_memory_was_seen(const std::string& folder) {
  std::error_code ignored;
  return std::filesystem::exists(folder + "/oom", ignored);
}

std::string container_name(const std::string& id) {
  return "bulkhead-" + id;
}

cgroup_name cgroup_named(const std::string& instance, const std::string& id) {
  return {instance, instance + "-" + id};
}

} // namespace bulkhead
