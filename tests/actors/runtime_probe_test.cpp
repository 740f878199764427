#define CAF_SUITE runtime_probe

#include "tests/support/driver_fixture.hpp"

/// Finding the engine, what it needs, and what holds.

using namespace bulkhead;
using namespace bulkhead::testing;

CAF_TEST_FIXTURE_SCOPE(runtime_probe_tests, driver_fixture)

CAF_TEST(nothing_is_run_before_it_is_needed) {
  make_driver();
  CAF_CHECK(script->commands.empty());
  CAF_CHECK(script->children.empty());
}

CAF_TEST(the_engine_and_what_holds_are_reported) {
  make_driver();
  auto found = ensure();
  CAF_REQUIRE(found.value);
  const auto& report = *found.value;
  CAF_CHECK_EQUAL(report.engine, "podman");
  CAF_CHECK_EQUAL(report.version, "4.3.1");
  CAF_CHECK_EQUAL(report.oci_runtime, "crun");
  CAF_CHECK_EQUAL(report.oci_version, "1.2.3");
  CAF_CHECK_EQUAL(report.cgroup_mode, "v2");
  CAF_CHECK_EQUAL(report.python, "3.13.5");
  CAF_CHECK_EQUAL(report.image_id, std::string(64, 'a'));
  CAF_CHECK(report.rootless);
  CAF_CHECK(report.warnings.empty());
  // The probe's container is gone, and so is its folder.
  CAF_CHECK(engine.containers.empty());
  CAF_CHECK(std::filesystem::is_empty(env.runtime_dir + "/" + env.instance + "/runs"));
}

CAF_TEST(requests_share_one_search) {
  make_driver();
  auto first = ask<runtime_report>(ensure_atom::value);
  auto second = ask<runtime_report>(ensure_atom::value);
  pass_until([&] { return first->value && second->value; });
  CAF_CHECK(first->value && second->value);
  CAF_CHECK_EQUAL(script->count("image inspect"), 1u);
  CAF_CHECK_EQUAL(script->children.size(), 1u);
}

CAF_TEST(without_an_engine_the_error_says_what_to_install_and_is_not_kept) {
  uninstall("podman");
  make_driver();
  auto found = ensure();
  CAF_CHECK(found.failure.code == errc::unavailable);
  CAF_CHECK(mentions(found.failure.message, "install podman"));
  install("podman");
  CAF_CHECK(ensure().value);
}

CAF_TEST(an_engine_that_the_settings_name_must_be_there) {
  env.config->runtime = "nerdctl";
  make_driver();
  CAF_CHECK(mentions(ensure().failure.message, "MCP_BRIDGE_RUNTIME says \"nerdctl\""));
}

CAF_TEST(a_missing_image_is_named_with_the_command_that_builds_it) {
  engine.image = false;
  make_driver();
  auto found = ensure();
  CAF_CHECK(found.failure.code == errc::unavailable);
  CAF_CHECK_EQUAL(found.failure.message,
                  "container image \"localhost/bulkhead-sandbox:latest\" is not in podman's store; "
                  "build it with: bulkhead image build");
  engine.image = true;
  CAF_CHECK(ensure().value);
}

CAF_TEST(a_missing_image_of_a_registry_is_to_be_fetched) {
  engine.image = false;
  for (const auto* image : {"docker.io/library/python:3.13-slim", "registry:5000/x"}) {
    env.config->image = image;
    make_driver();
    auto message = ensure().failure.message;
    CAF_CHECK(mentions(message, fmt::format("podman pull {}", image)));
    CAF_CHECK(mentions(message, fmt::format("bulkhead image build --pull {}", image)));
    stop_driver();
  }
  for (const auto* image : {"python:3.13-slim", "localhost:5000/x", "localhost/x:1"}) {
    env.config->image = image;
    make_driver();
    CAF_CHECK(mentions(ensure().failure.message, "build it with: bulkhead image build"));
    stop_driver();
  }
}

CAF_TEST(a_program_that_is_no_engine_is_said_to_be_none) {
  engine.version = "version --format {{.Client.Version}}";
  make_driver();
  auto message = ensure().failure.message;
  CAF_CHECK(mentions(message, "as podman: asked for its version, it says \"version --format"));
  CAF_CHECK(mentions(message, "MCP_BRIDGE_RUNTIME"));
}

CAF_TEST(root_is_refused_unless_allowed) {
  host.uid = 0;
  make_driver();
  CAF_CHECK(mentions(ensure().failure.message, "MCP_BRIDGE_ALLOW_ROOTFUL=1"));
  CAF_CHECK(script->commands.empty());
  stop_driver();
  env.config->allow_rootful = true;
  make_driver();
  auto found = ensure();
  CAF_REQUIRE(found.value);
  CAF_CHECK(!found.value->rootless);
  CAF_CHECK_EQUAL(found.value->warnings.size(), 1u);
}

CAF_TEST(missing_newuidmap_and_sub_uids_have_their_remedies) {
  uninstall("newuidmap");
  make_driver();
  CAF_CHECK(mentions(ensure().failure.message, "apt install uidmap"));
  install("newuidmap");
  engine.uid_map = "0 1000 1\n";
  CAF_CHECK(mentions(ensure().failure.message, "usermod --add-subuids"));
  engine.failing["unshare"] = {125,
                               "Error: cannot find UID/GID for user tester: no subuid ranges found "
                               "for user \"tester\" in /etc/subuid\n"};
  auto message = ensure().failure.message;
  CAF_CHECK(mentions(message, "--add-subgids 100000-165535 tester"));
}

CAF_TEST(a_docker_daemon_that_is_down_is_said) {
  env.config->runtime = "docker";
  install("docker");
  engine.failing["info"] = {1, "template: :1:2: executing \"\" at <.ServerVersion>: nil pointer\n"};
  engine.failing["version"] = {
      1, "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. "
         "Is the docker daemon running?\n"};
  make_driver();
  auto message = ensure().failure.message;
  CAF_CHECK(mentions(message, "reach docker's daemon"));
  CAF_CHECK(mentions(message, "Is the docker daemon running"));
  CAF_CHECK(mentions(message, "DOCKER_HOST"));
}

CAF_TEST(docker_is_refused_when_its_daemon_is_root_s) {
  env.config->runtime = "docker";
  install("docker");
  make_driver();
  CAF_CHECK(mentions(ensure().failure.message, "its daemon runs as root"));
  engine.docker_info = "24.0.7|2|runc|[\"name=seccomp,profile=builtin\",\"name=rootless\"]";
  auto found = ensure();
  CAF_REQUIRE(found.value);
  CAF_CHECK_EQUAL(found.value->version, "24.0.7");
  CAF_CHECK_EQUAL(found.value->oci_runtime, "runc");
}

CAF_TEST(an_oci_runtime_that_refuses_the_host_is_passed_over) {
  engine.refusing["crun"] = {
      126, "Error: OCI runtime error: crun: cgroups in hybrid mode not supported, "
           "drop all controllers from cgroupv2\n"};
  make_driver();
  auto found = ensure();
  CAF_REQUIRE(found.value);
  CAF_CHECK_EQUAL(found.value->oci_runtime, "runc");
}

CAF_TEST(a_failure_that_is_not_the_oci_runtimes_is_not_tried_again) {
  engine.refusing["crun"] = {125, "Error: no space left on device\n"};
  make_driver();
  auto found = ensure();
  CAF_CHECK(mentions(found.failure.message, "no space left on device"));
  CAF_CHECK_EQUAL(script->children.size(), 1u);
}

CAF_TEST(when_all_oci_runtimes_refuse_the_last_reason_is_given) {
  engine.refusing["crun"] = {126, "Error: OCI runtime error: crun: no\n"};
  engine.refusing["runc"] = {126, "Error: OCI runtime error: runc: neither\n"};
  make_driver();
  CAF_CHECK(mentions(ensure().failure.message, "runc: neither"));
}

CAF_TEST(missing_controllers_cost_the_limits_and_a_warning) {
  engine.refuse_limits = true;
  make_driver();
  auto found = ensure();
  CAF_REQUIRE(found.value);
  CAF_REQUIRE_EQUAL(found.value->warnings.size(), 1u);
  CAF_CHECK(mentions(found.value->warnings[0], "memory and pids limit isn't enforced"));
  CAF_CHECK(mentions(found.value->warnings[0], "Delegate="));
}

CAF_TEST(strict_refuses_limits_that_are_not_enforced) {
  use_cgroup_v1({});
  env.config->strict = true;
  make_driver();
  auto found = ensure();
  CAF_CHECK(found.failure.code == errc::unavailable);
  CAF_CHECK(mentions(found.failure.message, "MCP_BRIDGE_STRICT"));
  CAF_CHECK(mentions(found.failure.message, "deploy/setup.sh"));
}

CAF_TEST(swap_beyond_the_memory_limit_counts_as_not_enforced) {
  engine.limits = {{"memory", "536870912"}, {"swap", "max"}, {"pids", "128"}};
  make_driver();
  auto found = ensure();
  CAF_REQUIRE(found.value);
  CAF_REQUIRE_EQUAL(found.value->warnings.size(), 1u);
  CAF_CHECK(mentions(found.value->warnings[0], "memory limit isn't enforced"));
}

CAF_TEST(on_v1_the_delegated_cgroup_enforces_the_limits) {
  use_cgroup_v1({"memory", "pids", "cpu"});
  engine.limits = {{"memory", "536870912"}, {"memsw", "536870912"}, {"pids", "128"}};
  env.config->strict = true;
  make_driver();
  auto found = ensure();
  CAF_REQUIRE(found.value);
  CAF_CHECK_EQUAL(found.value->cgroup_mode, "v1 delegated");
  // A hybrid host: runc goes first, since crun refuses it.
  CAF_CHECK_EQUAL(found.value->oci_runtime, "runc");
  const auto& argv = script->children[0].spec().argv;
  CAF_CHECK(std::find(argv.begin(), argv.end(), "--memory") == argv.end());
  CAF_CHECK_EQUAL(script->children[0].spec().cgroups.size(), 3u);
  // Nothing of the probe is left.
  CAF_CHECK_EQUAL(cgroups->folders.size(), 3u);
}

CAF_TEST(a_container_that_says_nothing_is_given_up_and_removed) {
  script->started = [this](const scripted_child& child) {
    engine.containers["silent"] = {"silent", env.instance, {}, {}, child.id(), true};
  };
  make_driver();
  auto found = ensure();
  CAF_CHECK(found.failure.code == errc::unavailable);
  CAF_CHECK(mentions(found.failure.message, "said nothing for 30 s"));
  CAF_CHECK(script->count("rm -f") >= 1u);
}

CAF_TEST(a_vfs_store_is_warned_about) {
  engine.driver = "vfs";
  make_driver();
  auto found = ensure();
  CAF_REQUIRE(found.value);
  CAF_REQUIRE_EQUAL(found.value->warnings.size(), 1u);
  CAF_CHECK(mentions(found.value->warnings[0], "storage driver is vfs"));
}

CAF_TEST(a_later_start_takes_the_kept_findings) {
  make_driver();
  auto first = ensure();
  CAF_REQUIRE(first.value);
  stop_driver();
  script->commands.clear();
  make_driver();
  auto second = ensure();
  CAF_REQUIRE(second.value);
  CAF_CHECK(*first.value == *second.value);
  CAF_CHECK_EQUAL(script->children.size(), 1u);
  CAF_CHECK_EQUAL(script->commands.size(), 1u);
}

CAF_TEST(kept_findings_are_of_this_account_alone_and_whole) {
  make_driver();
  CAF_REQUIRE(ensure().value);
  stop_driver();
  auto file = env.home + "/.cache/bulkhead/probe.json";
  std::filesystem::permissions(file, std::filesystem::perms::all);
  make_driver();
  CAF_REQUIRE(ensure().value);
  CAF_CHECK_EQUAL(script->children.size(), 2u);
  stop_driver();
  put("home/.cache/bulkhead/probe.json", "{\"key\":");
  std::filesystem::permissions(file, std::filesystem::perms::owner_read);
  make_driver();
  CAF_REQUIRE(ensure().value);
  CAF_CHECK_EQUAL(script->children.size(), 3u);
}

/// Does a change, made while no driver runs, lead to a new probe?
#define CHECK_PROBED_AGAIN(change)                                                                 \
  do {                                                                                             \
    auto before = script->children.size();                                                         \
    change;                                                                                        \
    make_driver();                                                                                 \
    CAF_CHECK(ensure().value);                                                                     \
    CAF_CHECK_EQUAL(script->children.size(), before + 1);                                          \
    stop_driver();                                                                                 \
  } while (false)

CAF_TEST(whatever_may_change_the_findings_makes_them_stale) {
  CHECK_PROBED_AGAIN((void)0);
  CHECK_PROBED_AGAIN(engine.image_id = std::string(64, 'b'));
  CHECK_PROBED_AGAIN(put("bin/podman", "#!/bin/sh\n# newer\n"));
  CHECK_PROBED_AGAIN(put("bin/crun", "#!/bin/sh\n# newer\n"));
  CHECK_PROBED_AGAIN(put("proc/sys/kernel/random/boot_id", "boot-2\n"));
  CHECK_PROBED_AGAIN(env.config->memory *= 2);
  CHECK_PROBED_AGAIN(env.config->cpus = 0.5);
  CHECK_PROBED_AGAIN(env.config->oci_runtime = "runc");
  CHECK_PROBED_AGAIN(variables["XDG_DATA_HOME"] = root + "/data");
  CHECK_PROBED_AGAIN(put("subuid", "tester:200000:65536\n"));
  CHECK_PROBED_AGAIN(host.uid = 1001);
}

CAF_TEST(errors_are_not_kept) {
  engine.refusing["crun"] = {126, "Error: OCI runtime error: crun: no\n"};
  engine.refusing["runc"] = {126, "Error: OCI runtime error: runc: no\n"};
  make_driver();
  CAF_CHECK(!ensure().value);
  CAF_CHECK(!std::filesystem::exists(env.home + "/.cache/bulkhead/probe.json"));
}

CAF_TEST(podman_that_lost_its_processes_is_mended) {
  engine.processes_lost = true;
  make_driver();
  CAF_REQUIRE(ensure().value);
  CAF_CHECK(!engine.processes_lost);
}

CAF_TEST(podman_that_cannot_be_mended_is_asked_once_more_only) {
  engine.failing["system migrate"] = {125, "Error: no\n"};
  engine.failing["image inspect"] = {1, "level=error msg=\"invalid internal status, try resetting "
                                        "the pause process with \\\"podman system migrate\\\"\"\n"};
  make_driver();
  CAF_CHECK(mentions(ensure().failure.message, "invalid internal status"));
  CAF_CHECK_EQUAL(script->count("image inspect"), 2u);
}

CAF_TEST(the_engine_gets_a_minimal_environment) {
  variables["HTTP_PROXY"] = "http://user:secret@proxy";
  variables["NOTIFY_SOCKET"] = "/run/notify";
  make_driver();
  CAF_REQUIRE(ensure().value);
  for (const auto& child : script->children) {
    for (const auto& entry : child.spec().env) {
      CAF_CHECK(!mentions(entry, "secret") && !mentions(entry, "NOTIFY"));
    }
  }
}

CAF_TEST_FIXTURE_SCOPE_END()
