#define CAF_SUITE container_life

#include "tests/support/driver_fixture.hpp"

/// A container from its start to its certain removal.

using namespace bulkhead;
using namespace bulkhead::testing;

namespace {

struct life_fixture : driver_fixture {
  /// The name of the container that the driver made last.
  const fake_container& latest() const {
    return std::max_element(
               engine.containers.begin(), engine.containers.end(),
               [](const auto& a, const auto& b) { return a.second.child < b.second.child; })
        ->second;
  }

  void use_delegated_cgroups() {
    use_cgroup_v1({"memory", "pids", "cpu"});
    engine.limits = {{"memory", "536870912"}, {"memsw", "536870912"}, {"pids", "128"}};
  }

  /// Of the container that was made last.
  std::size_t removals(const container_handle& handle) const {
    return script->count("--ignore " + handle.name);
  }
};

} // namespace

CAF_TEST_FIXTURE_SCOPE(container_life_tests, life_fixture)

CAF_TEST(a_container_is_started_in_its_own_folder_with_the_entry_point) {
  make_driver();
  auto handle = create();
  CAF_CHECK_EQUAL(handle.name, "bulkhead-" + handle.id);
  CAF_CHECK_EQUAL(handle.child, script->children.back().id());
  const auto& spec = script->children.back().spec();
  CAF_CHECK_EQUAL(spec.cwd, handle.folder);
  CAF_CHECK_EQUAL(spec.argv.back(), "/ipc/entrypoint.py");
  CAF_CHECK_EQUAL(value_of(spec.argv, "--cidfile"), handle.folder + "/cid");
  CAF_CHECK_EQUAL(value_of(spec.argv, "--memory"), "536870912b");
  CAF_CHECK_EQUAL(value_of(spec.argv, "--label"), "org.bulkhead.instance=0123456789abcdef");
  CAF_CHECK(!spec.kill_group_at_exit);
  CAF_CHECK(spec.cgroups.empty());
}

CAF_TEST(on_v1_the_net_is_set_before_the_start_and_the_limits_once_it_has_booted) {
  use_delegated_cgroups();
  env.config->cpus = 0.5;
  make_driver();
  auto handle = create();
  auto name = "/0123456789abcdef/0123456789abcdef-" + handle.id;
  auto memory = base_of("memory") + name;
  auto pids = base_of("pids") + name;
  auto cpu = base_of("cpu") + name;
  CAF_CHECK(handle.cgroups == (std::vector<std::string>{memory, pids, cpu}));
  CAF_CHECK(script->children.back().spec().cgroups == handle.cgroups);
  CAF_CHECK_EQUAL(cgroups->files[memory + "/memory.limit_in_bytes"],
                  std::to_string(576 * mebibyte));
  CAF_CHECK_EQUAL(cgroups->files[pids + "/pids.max"], "192");
  CAF_CHECK_EQUAL(cgroups->files.count(cpu + "/cpu.cfs_quota_us"), 0u);
  CAF_CHECK(confine(handle).value);
  auto cid = "/" + latest().cid;
  CAF_CHECK_EQUAL(cgroups->files[memory + cid + "/memory.limit_in_bytes"], "536870912");
  CAF_CHECK_EQUAL(cgroups->files[memory + cid + "/memory.memsw.limit_in_bytes"], "536870912");
  CAF_CHECK_EQUAL(cgroups->files[pids + cid + "/pids.max"], "128");
  CAF_CHECK_EQUAL(cgroups->files[cpu + cid + "/cpu.cfs_quota_us"], "50000");
}

CAF_TEST(a_limit_that_can_not_be_set_fails_the_run) {
  use_delegated_cgroups();
  make_driver();
  auto handle = create();
  cgroups->refused.insert(handle.cgroups[1] + "/" + latest().cid + "/pids.max");
  auto confined = confine(handle);
  CAF_CHECK(confined.failure.code == errc::unavailable);
  CAF_CHECK(mentions(confined.failure.message, "pids.max"));
}

CAF_TEST(a_failed_start_leaves_no_cgroup) {
  use_delegated_cgroups();
  make_driver();
  CAF_REQUIRE(ensure().value);
  script->refuse = [](const process_spec&) {
    return error{errc::unavailable, "start podman: no memory"};
  };
  auto made = get<container_handle>(
      create_atom::value, container_request{std::string(32, 'c'), env.runtime_dir}, owner());
  CAF_CHECK(mentions(made.failure.message, "no memory"));
  CAF_CHECK_EQUAL(cgroups->folders.size(), 3u);
}

CAF_TEST(a_cgroup_that_can_not_be_made_takes_the_others_with_it) {
  use_delegated_cgroups();
  make_driver();
  CAF_REQUIRE(ensure().value);
  auto id = std::string(32, 'c');
  cgroups->refused.insert(base_of("pids") + "/0123456789abcdef/0123456789abcdef-" + id);
  auto made =
      get<container_handle>(create_atom::value, container_request{id, env.runtime_dir}, owner());
  CAF_CHECK(made.failure.code == errc::unavailable);
  CAF_CHECK_EQUAL(cgroups->folders.size(), 3u);
}

CAF_TEST(a_container_that_ended_by_itself_costs_no_command) {
  use_delegated_cgroups();
  make_driver();
  auto handle = create();
  CAF_CHECK(confine(handle).value);
  script->commands.clear();
  engine.end(*script, handle.name, 0);
  CAF_CHECK(destroy(handle).value);
  CAF_CHECK(script->commands.empty());
  CAF_CHECK_EQUAL(cgroups->folders.size(), 3u);
}

CAF_TEST(a_running_container_is_removed_by_force_and_its_command_line_killed) {
  make_driver();
  auto handle = create();
  CAF_CHECK(confine(handle).value);
  std::vector<std::int32_t> signals;
  auto served = script->signalled;
  script->signalled = [&](const scripted_child& child, std::int32_t signal) {
    signals.push_back(signal);
    served(child, signal);
  };
  CAF_CHECK(destroy(handle).value);
  CAF_CHECK(!signals.empty() && signals.front() == SIGTERM);
  CAF_CHECK(engine.containers.empty());
  CAF_CHECK_EQUAL(removals(handle), 1u);
}

CAF_TEST(what_a_start_makes_while_it_is_removed_is_removed_too) {
  make_driver();
  auto handle = create();
  CAF_CHECK(destroy(handle).value);
  CAF_CHECK_EQUAL(removals(handle), 2u);
}

CAF_TEST(removal_is_idempotent) {
  make_driver();
  auto handle = create();
  CAF_CHECK(destroy(handle).value);
  CAF_CHECK(destroy(handle).value);
  auto unknown = handle;
  unknown.id = std::string(32, 'd');
  unknown.name = "bulkhead-" + unknown.id;
  unknown.folder = "/nowhere";
  unknown.pid = 0;
  CAF_CHECK(destroy(unknown).value);
}

CAF_TEST(removals_of_one_container_share_their_result) {
  make_driver();
  auto handle = create();
  CAF_CHECK(confine(handle).value);
  auto first = ask<caf::ok_atom>(destroy_atom::value, handle);
  auto second = ask<caf::ok_atom>(destroy_atom::value, handle);
  pass_until([&] { return first->value && second->value; });
  CAF_CHECK(first->value && second->value);
  CAF_CHECK_EQUAL(removals(handle), 1u);
}

CAF_TEST(removal_is_tried_again_until_the_container_is_gone) {
  make_driver();
  auto handle = create();
  engine.failing_removals = 2;
  CAF_CHECK(destroy(handle).value);
  CAF_CHECK_EQUAL(removals(handle), 3u);
  CAF_CHECK(engine.containers.empty());
}

CAF_TEST(removal_that_never_works_ends_with_an_error_that_says_what_to_do) {
  make_driver();
  auto handle = create();
  engine.failing_removals = 1000;
  auto removed = destroy(handle);
  CAF_CHECK(removed.failure.code == errc::unavailable);
  CAF_CHECK(mentions(removed.failure.message, "container is busy"));
  CAF_CHECK(mentions(removed.failure.message, "rm -f " + handle.name));
  // It isn't forgotten: a later attempt removes it.
  engine.failing_removals = 0;
  CAF_CHECK(destroy(handle).value);
}

CAF_TEST(a_hanging_engine_does_not_hang_the_removal) {
  make_driver();
  auto handle = create();
  engine.hanging_removals = true;
  auto removed = destroy(handle);
  CAF_CHECK(mentions(removed.failure.message, "deadline"));
}

CAF_TEST(what_only_the_oci_runtime_still_has_is_removed_there) {
  make_driver();
  auto handle = create();
  auto cid = latest().cid;
  // Killed in the middle of its start: podman has no record, the OCI runtime does.
  engine.containers.erase(handle.name);
  std::filesystem::remove_all(engine.storage() + "/" + cid);
  script->signalled(script->children.back(), SIGKILL);
  CAF_CHECK(destroy(handle).value);
  CAF_CHECK(!std::filesystem::exists(engine.oci_root("crun") + "/" + cid));
  CAF_CHECK_EQUAL(script->count("delete --force " + cid), 1u);
}

CAF_TEST(processes_that_are_left_in_the_cgroup_are_killed) {
  use_delegated_cgroups();
  make_driver();
  auto handle = create();
  cgroups->processes[handle.cgroups[0]].insert(5555);
  CAF_CHECK(destroy(handle).value);
  CAF_CHECK_EQUAL(script->count("sh 5555"), 1u);
  CAF_CHECK_EQUAL(cgroups->folders.size(), 3u);
}

CAF_TEST(the_engines_pause_process_is_moved_and_not_killed) {
  use_delegated_cgroups();
  make_driver();
  auto handle = create();
  put("proc/5556/cmdline", std::string{"catatonit\0-P\0", 13});
  cgroups->processes[handle.cgroups[0]].insert(5556);
  auto removing = ask<caf::ok_atom>(destroy_atom::value, handle);
  pass_until([&] { return cgroups->files.contains(base_of("memory") + "/cgroup.procs"); });
  CAF_CHECK_EQUAL(cgroups->files[base_of("memory") + "/cgroup.procs"], "5556");
  cgroups->processes.clear();
  pass_until([&] { return removing->value.has_value(); });
  CAF_CHECK(removing->value);
  CAF_CHECK_EQUAL(script->count("5556"), 0u);
}

CAF_TEST(running_out_of_memory_is_told_from_other_ends) {
  make_driver();
  auto handle = create();
  CAF_CHECK(confine(handle).value);
  auto lost = classify(handle, 137);
  CAF_CHECK(lost.reason.code == errc::runtime_lost);
  std::ofstream{handle.folder + "/oom"};
  auto exhausted = classify(handle, 137);
  CAF_CHECK(exhausted.reason.code == errc::out_of_memory);
  CAF_CHECK(mentions(exhausted.reason.message, "512 MiB"));
  // A child that was killed doesn't make an orderly end one of memory.
  auto ended = classify(handle, 3);
  CAF_CHECK(ended.reason.code == errc::none);
  CAF_CHECK_EQUAL(ended.exit_code, 3);
}

CAF_TEST(docker_is_asked_whether_it_was_memory) {
  env.config->runtime = "docker";
  env.config->allow_rootful = true;
  install("docker");
  make_driver();
  auto handle = create();
  const auto& argv = script->children.back().spec().argv;
  CAF_CHECK(std::find(argv.begin(), argv.end(), "--rm") == argv.end());
  CAF_CHECK(confine(handle).value);
  CAF_CHECK(classify(handle, 137).reason.code == errc::runtime_lost);
  engine.oom_killed = true;
  CAF_CHECK(classify(handle, 137).reason.code == errc::out_of_memory);
  CAF_CHECK(destroy(handle).value);
}

CAF_TEST(a_start_that_fails_is_unavailable_and_makes_the_findings_stale) {
  make_driver();
  auto handle = create();
  auto verdict = classify(handle, 125, "Error: inspecting object: image not known\n");
  CAF_CHECK(verdict.reason.code == errc::unavailable);
  CAF_CHECK(mentions(verdict.reason.message, "image not known"));
  CAF_CHECK(!std::filesystem::exists(env.home + "/.cache/bulkhead/probe.json"));
  CAF_CHECK(destroy(handle).value);
  auto before = script->count("image inspect");
  create();
  CAF_CHECK_EQUAL(script->count("image inspect"), before + 1);
}

CAF_TEST(an_engine_that_was_killed_while_it_started_keeps_the_findings) {
  make_driver();
  auto handle = create();
  auto verdict = classify(handle, 137);
  CAF_CHECK(verdict.reason.code == errc::unavailable);
  CAF_CHECK(mentions(verdict.reason.message, "killed (signal 9)"));
  CAF_CHECK(destroy(handle).value);
  auto before = script->count("image inspect");
  create();
  CAF_CHECK_EQUAL(script->count("image inspect"), before);
}

CAF_TEST(codes_of_the_engine_are_the_programs_own_once_it_has_booted) {
  make_driver();
  auto handle = create();
  CAF_CHECK(confine(handle).value);
  engine.containers.at(handle.name).running = false;
  CAF_CHECK(classify(handle, 125).reason.code == errc::none);
  auto lost = classify(handle, 127, "Error: conmon exited prematurely\n");
  CAF_CHECK(lost.reason.code == errc::runtime_lost);
  // Its monitor died: the engine's command gives up without a word, and the container goes on.
  engine.containers.at(handle.name).running = true;
  CAF_CHECK(classify(handle, 127).reason.code == errc::runtime_lost);
  engine.containers.clear();
  CAF_CHECK(classify(handle, 127).reason.code == errc::none);
}

CAF_TEST_FIXTURE_SCOPE_END()
