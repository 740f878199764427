#define CAF_SUITE rest_driver

#include "tests/support/rest_fixture.hpp"

/// The driver with podman's REST service: which service, a container's life, the service's death.

using namespace bulkhead;
using namespace bulkhead::testing;

CAF_TEST_FIXTURE_SCOPE(rest_driver_tests, rest_fixture)

// -- which driver, which service -----------------------------------------------------------------

CAF_TEST(on_v2_the_service_is_found_where_its_limits_hold) {
  env.config->driver.clear();
  make_driver();
  auto found = ensure();
  CAF_REQUIRE(found.value);
  CAF_CHECK_EQUAL(found.value->driver, "rest");
  CAF_CHECK(found.value->warnings.empty());
}

CAF_TEST(on_v1_the_command_line_is_the_default) {
  env.config->driver.clear();
  use_cgroup_v1({"memory", "pids"});
  make_driver();
  auto found = ensure();
  CAF_REQUIRE(found.value);
  CAF_CHECK_EQUAL(found.value->driver, "cli");
  CAF_CHECK_EQUAL(services(), 0u);
}

CAF_TEST(a_service_that_does_not_start_is_done_without_unless_it_is_asked_for) {
  service.starts = false;
  env.config->driver.clear();
  make_driver();
  auto found = ensure();
  CAF_REQUIRE(found.value);
  CAF_CHECK_EQUAL(found.value->driver, "cli");
  stop_driver();
  env.config->driver = "rest";
  make_driver();
  auto refused = ensure();
  CAF_CHECK(refused.failure.code == errc::unavailable);
  CAF_CHECK(mentions(refused.failure.message, "unable to listen"));
  CAF_CHECK(mentions(refused.failure.message, "unset MCP_BRIDGE_DRIVER"));
}

CAF_TEST(docker_has_no_such_service) {
  env.config->runtime = "docker";
  env.config->allow_rootful = true;
  install("docker");
  make_driver();
  auto refused = ensure();
  CAF_CHECK(mentions(refused.failure.message, "only podman"));
}

CAF_TEST(what_was_found_of_the_service_is_kept) {
  make_driver();
  CAF_REQUIRE(ensure().value);
  stop_driver();
  make_driver();
  auto found = ensure();
  CAF_REQUIRE(found.value);
  CAF_CHECK_EQUAL(found.value->driver, "rest");
  CAF_CHECK_EQUAL(services(), 1u);
}

CAF_TEST_FIXTURE_SCOPE_END()

CAF_TEST_FIXTURE_SCOPE(users_service_tests, users_socket_fixture)

CAF_TEST(the_accounts_own_service_is_used_where_it_answers) {
  make_driver();
  auto handle = create();
  CAF_CHECK_EQUAL(services(), 0u);
  CAF_CHECK(destroy(handle).value);
}

CAF_TEST(the_accounts_own_service_is_left_where_it_starts_no_sandbox_and_that_is_kept) {
  service.users_works = false;
  make_driver();
  auto handle = create();
  CAF_CHECK_EQUAL(services(), 1u);
  CAF_CHECK(destroy(handle).value);
  stop_driver();
  service.process = 0;
  make_driver();
  CAF_CHECK(destroy(create()).value);
  CAF_CHECK_EQUAL(services(), 2u);
}

CAF_TEST(only_a_delegated_cgroup_is_better_than_the_accounts_own_service) {
  use_cgroup_v1({"memory", "pids"});
  engine.limits = {{"memory", "536870912"}, {"memsw", "536870912"}, {"pids", "128"}};
  make_driver();
  auto handle = create();
  CAF_CHECK_EQUAL(services(), 1u);
  CAF_CHECK(destroy(handle).value);
  stop_driver();
  service.process = 0;
  variables["CONTAINER_HOST"] = "unix://" + path;
  make_driver();
  CAF_CHECK(destroy(create()).value);
  CAF_CHECK_EQUAL(services(), 1u);
}

CAF_TEST_FIXTURE_SCOPE_END()

CAF_TEST_FIXTURE_SCOPE(rest_driver_life_tests, rest_fixture)

CAF_TEST(its_own_service_is_marked_guarded_and_in_the_instances_folder) {
  make_driver();
  create();
  const auto& spec = service_spec();
  CAF_CHECK(mentions(spec.argv.back(), "unix://" + env.runtime_dir + "/" + env.instance + "/"));
  CAF_CHECK_EQUAL(value_of(spec.argv, "--runtime"), "crun");
  CAF_CHECK(spec.kill_group_at_exit);
  CAF_CHECK(std::find(spec.env.begin(), spec.env.end(), "BULKHEAD_CHILD=0123456789abcdef/engine") !=
            spec.env.end());
  CAF_CHECK(mentions(spec.argv[2], "kill -9 0"));
}

// -- a container's life --------------------------------------------------------------------------

CAF_TEST(a_container_is_made_attached_to_and_started_without_a_command) {
  make_driver();
  CAF_REQUIRE(ensure().value);
  script->commands.clear();
  script->requests.clear();
  auto handle = create();
  CAF_CHECK(script->commands.empty());
  auto of = "/v4.3.1/libpod/containers/" + handle.name;
  CAF_CHECK(script->requests ==
            (std::vector<std::string>{"POST /v4.3.1/libpod/containers/create",
                                      "POST " + of + "/init", "POST " + of + "/start"}));
  CAF_CHECK_EQUAL(script->children.back().spec().argv.front(), "attach");
  CAF_CHECK_EQUAL(handle.child, script->children.back().id());
  CAF_CHECK_EQUAL(handle.pid, 0);
  CAF_CHECK_EQUAL(service.bodies[handle.name]["command"].back(), "/ipc/entrypoint.py");
  CAF_CHECK_EQUAL(read_small_file(handle.folder + "/cid").value_or(""),
                  engine.containers[handle.name].cid);
  CAF_CHECK(destroy(handle).value);
  CAF_CHECK(script->commands.empty());
  CAF_CHECK(engine.containers.empty());
}

CAF_TEST(in_a_delegated_cgroup_each_container_gets_its_own_limits) {
  use_cgroup_v1({"memory", "pids", "cpu"});
  engine.limits = {{"memory", "536870912"}, {"memsw", "536870912"}, {"pids", "128"}};
  env.config->cpus = 0.5;
  make_driver();
  auto handle = create();
  const auto outer = service_spec().cgroups;
  CAF_REQUIRE(outer.size() == 3);
  CAF_CHECK_EQUAL(cgroups->files.count(outer[0] + "/memory.limit_in_bytes"), 0u);
  CAF_CHECK(confine(handle).value);
  auto inner = "/" + engine.containers[handle.name].cid;
  CAF_CHECK_EQUAL(cgroups->files[outer[0] + inner + "/memory.limit_in_bytes"], "536870912");
  CAF_CHECK_EQUAL(cgroups->files[outer[1] + inner + "/pids.max"], "128");
  CAF_CHECK_EQUAL(cgroups->files[outer[2] + inner + "/cpu.cfs_quota_us"], "50000");
  CAF_CHECK(destroy(handle).value);
  CAF_CHECK(cgroups->folders.contains(outer[0]));
  CAF_CHECK(get<caf::ok_atom>(stop_atom::value).value);
  CAF_CHECK_EQUAL(cgroups->folders.size(), 3u);
  CAF_CHECK_EQUAL(service.process, 0u);
}

CAF_TEST(a_step_that_is_refused_leaves_nothing_and_tells_why) {
  for (const auto* step : {"/create", "/init", "/start"}) {
    make_driver();
    CAF_REQUIRE(ensure().value);
    service.refusals[step] = 1;
    auto made = get<container_handle>(
        create_atom::value, container_request{std::string(32, 'c'), env.runtime_dir}, owner());
    CAF_CHECK(made.failure.code == errc::unavailable);
    CAF_CHECK(mentions(made.failure.message, "podman's service: it can't be done now"));
    CAF_CHECK(engine.containers.empty());
    stop_driver();
  }
}

CAF_TEST(a_removal_that_is_refused_is_tried_again) {
  make_driver();
  auto handle = create();
  script->commands.clear();
  service.refusals["DELETE"] = 3;
  CAF_CHECK(destroy(handle).value);
  CAF_CHECK_EQUAL(requests("DELETE /v4.3.1/libpod/containers/" + handle.name), 4u);
  CAF_CHECK(script->commands.empty());
  CAF_CHECK(engine.containers.empty());
}

CAF_TEST(what_the_service_can_not_remove_the_command_line_does) {
  make_driver();
  auto handle = create();
  service.refusals["DELETE"] = 1000;
  CAF_CHECK(destroy(handle).value);
  CAF_CHECK(script->count("rm -f -v -t 0 --ignore " + handle.name) > 0);
  CAF_CHECK(engine.containers.empty());
}

CAF_TEST(a_container_that_the_oci_runtime_keeps_is_removed_thoroughly) {
  make_driver();
  auto handle = create();
  auto kept = engine.oci_root("crun") + "/" + engine.containers[handle.name].cid;
  std::filesystem::create_directories(kept);
  CAF_CHECK(destroy(handle).value);
  CAF_CHECK(!std::filesystem::exists(kept));
}

// -- why it ended --------------------------------------------------------------------------------

CAF_TEST(any_exit_code_is_the_programs) {
  make_driver();
  auto handle = create();
  CAF_CHECK(confine(handle).value);
  for (std::int32_t code : {0, 3, 125, 127}) {
    auto verdict = classify(handle, code, "Error: of the program");
    CAF_CHECK(verdict.reason.code == errc::none);
    CAF_CHECK_EQUAL(verdict.exit_code, code);
  }
}

CAF_TEST(a_kill_was_for_want_of_memory_when_the_service_or_its_monitors_say_so) {
  make_driver();
  auto handle = create();
  CAF_CHECK(confine(handle).value);
  CAF_CHECK(classify(handle, 137).reason.code == errc::runtime_lost);
  service.out_of_memory = true;
  CAF_CHECK(classify(handle, 137).reason.code == errc::out_of_memory);
  service.out_of_memory = false;
  put("run/bulkhead/" + env.instance + "/service/oom", "");
  CAF_CHECK(classify(handle, 137).reason.code == errc::out_of_memory);
  // The note counts once.
  CAF_CHECK(classify(handle, 137).reason.code == errc::runtime_lost);
}

CAF_TEST(a_guest_that_ends_before_it_is_ready_is_a_failed_start) {
  make_driver();
  auto handle = create();
  auto verdict = classify(handle, 1, "SyntaxError: of the image\n");
  CAF_CHECK(verdict.reason.code == errc::unavailable);
  CAF_CHECK(mentions(verdict.reason.message, "SyntaxError"));
}

// -- the service's death -------------------------------------------------------------------------

CAF_TEST(a_service_that_died_is_started_again_for_the_next_container) {
  make_driver();
  auto first = create();
  CAF_CHECK(confine(first).value);
  service.die(*script);
  consume();
  auto lost = get<exit_verdict>(classify_atom::value, first,
                                child_exited{first.child, 137, SIGKILL}, std::string{});
  CAF_REQUIRE(lost.value);
  CAF_CHECK(lost.value->reason.code == errc::runtime_lost);
  CAF_CHECK(mentions(lost.value->reason.message, "service was lost"));
  auto second = create();
  CAF_CHECK_EQUAL(services(), 2u);
  // Its successor may not know all that is left of the first.
  CAF_CHECK(destroy(first).value);
  CAF_CHECK(script->count("rm -f -v -t 0 --ignore " + first.name) > 0);
  CAF_CHECK(destroy(second).value);
  CAF_CHECK(engine.containers.empty());
}

CAF_TEST(a_death_that_nobody_has_noticed_costs_no_run) {
  make_driver();
  CAF_REQUIRE(ensure().value);
  // Its guard lives on for a moment.
  service.process = 0;
  auto handle = create();
  CAF_CHECK_EQUAL(services(), 2u);
  CAF_CHECK(destroy(handle).value);
}

CAF_TEST(a_service_that_dies_while_it_makes_a_container_costs_no_run) {
  make_driver();
  CAF_REQUIRE(ensure().value);
  auto answer = script->answer;
  bool died = false;
  script->answer = [&](const socket_request& request) -> expected<socket_answer> {
    if (request.target.ends_with("/init") && !std::exchange(died, true)) {
      answer(request);
      service.die(*script);
      return fail(errc::runtime_lost, "the connection broke");
    }
    return answer(request);
  };
  auto handle = create();
  CAF_CHECK_EQUAL(services(), 2u);
  CAF_CHECK(destroy(handle).value);
  CAF_CHECK(engine.containers.empty());
}

CAF_TEST(containers_are_made_one_after_the_other) {
  make_driver();
  CAF_REQUIRE(ensure().value);
  script->requests.clear();
  std::vector<std::shared_ptr<answered<container_handle>>> made;
  for (char id : {'a', 'b', 'c'}) {
    auto folder = env.runtime_dir + "/" + id;
    std::filesystem::create_directories(folder);
    made.push_back(ask<container_handle>(create_atom::value,
                                         container_request{std::string(32, id), folder}, owner()));
  }
  pass_until([&] { return made[0]->value && made[1]->value && made[2]->value; });
  int making = 0;
  for (const auto& line : script->requests) {
    making += line.ends_with("/create") ? 1 : line.ends_with("/init") ? -1 : 0;
    CAF_CHECK(making == 0 || making == 1);
  }
  CAF_CHECK_EQUAL(requests("/init"), 3u);
}

CAF_TEST(what_was_found_outlives_a_service) {
  make_driver();
  CAF_REQUIRE(ensure().value);
  auto probes = script->count("image inspect");
  service.die(*script);
  service.starts = false;
  consume();
  auto made = get<container_handle>(
      create_atom::value, container_request{std::string(32, 'c'), env.runtime_dir}, owner());
  CAF_CHECK(made.failure.code == errc::unavailable);
  service.starts = true;
  CAF_CHECK(destroy(create()).value);
  CAF_CHECK_EQUAL(script->count("image inspect"), probes);
}

CAF_TEST_FIXTURE_SCOPE_END()
