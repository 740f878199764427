#include "actors/container_drive.hpp"

#include "actors/container_launch.hpp"
#include "actors/gvisor.hpp"
#include "actors/oci_bundle.hpp"
#include "actors/rest_containers.hpp"

namespace bulkhead {

namespace {

task<expected<container_record>>
start_by_command(driver_context& context, const runtime_facts& facts, container_request request,
                 cgroup_limits limits, std::vector<std::string> command, stdio_owner owner) {
  auto ready = co_await ready_to_launch(context, facts);
  if (!ready) {
    co_return tl::unexpected{ready.error()};
  }
  auto launch =
      prepare_launch(context, facts, request.id, request.folder, limits, std::move(command));
  if (!launch) {
    co_return tl::unexpected{launch.error()};
  }
  completion<expected<child_started>> spawned{[&context, &launch, &owner](auto done) {
    context.services.spawn(std::move(launch->process), owner.actor, std::move(done));
  }};
  auto child = co_await spawned;
  if (!child) {
    remove_cgroups(*context.host.cgroups, launch->handle.cgroups);
    co_return tl::unexpected{child.error()};
  }
  if (owner.probe != nullptr) {
    context.sessions[child->id] = owner.probe;
  }
  container_record record;
  record.handle = std::move(launch->handle);
  record.handle.child = child->id;
  record.handle.pid = child->pid;
  record.start_time = process_start_time(context.host, child->pid).value_or(0);
  record.limits = limits;
  record.outer_cgroups = record.handle.cgroups;
  co_return record;
}

} // namespace

task<expected<container_record>>
start_container(driver_context& context, const runtime_facts& facts, container_request request,
                cgroup_limits limits, std::vector<std::string> command, stdio_owner owner) {
  auto start = facts.report.driver == rest_driver ? start_by_rest : start_by_command;
  auto result = co_await start(context, facts, std::move(request), limits, std::move(command),
                               std::move(owner));
  co_return result;
}

expected<void> confine_container(driver_context& context, const runtime_facts& facts,
                                 const container_record& record) {
  if (facts.oci) {
    note_memory_kills(context, record.handle.folder);
  }
  if (facts.gvisor) {
    // It makes no cgroup of its own: the run's, with everything in it, is the bound.
    auto limits = with_room_for_gvisor(record.limits);
    limits.memory += command_line_memory;
    limits.pids += command_line_pids;
    return confine_run_cgroups(*context.host.cgroups, record.outer_cgroups, {}, limits, true);
  }
  return confine_run_cgroups(*context.host.cgroups, record.outer_cgroups,
                             read_container_id(record.handle.folder), record.limits,
                             facts.oci.has_value());
}

task<expected<void>> end_container(driver_context& context, const runtime_facts& facts,
                                   container_record record) {
  if (record.service != 0) {
    auto removed = co_await remove_by_rest(context, facts, std::move(record));
    co_return removed;
  }
  auto removed = co_await remove_container(context, facts, std::move(record));
  co_return removed;
}

task<bool> killed_for_memory(driver_context& context, const runtime_facts& facts,
                             container_handle handle) {
  auto ask = facts.report.driver == rest_driver ? ran_out_of_memory_by_rest : ran_out_of_memory;
  bool result = co_await ask(context, facts, std::move(handle));
  co_return result;
}

} // namespace bulkhead
