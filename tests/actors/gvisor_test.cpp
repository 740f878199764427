#define CAF_SUITE gvisor

#include "actors/gvisor.hpp"

#include <sys/stat.h>

#include <nlohmann/json.hpp>

#include "actors/shared_folder.hpp"
#include "tests/support/driver_fixture.hpp"

/// gVisor under rootless podman: what it is started with, and where it can't be.

using namespace bulkhead;
using namespace bulkhead::testing;
using nlohmann::json;

namespace {

struct gvisor_fixture : driver_fixture {
  gvisor_fixture() {
    install("runsc");
    env.config->oci_runtime = "runsc";
    // It shows the guest no limits.
    engine.limits = json::object();
  }

  std::string wrapper() const { return env.home + "/.cache/bulkhead/gvisor/runsc"; }
  std::string wrapper_text() const { return read_small_file(wrapper()).value_or(""); }
};

unsigned mode_of(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 ? info.st_mode & 0777 : 0;
}

} // namespace

CAF_TEST_FIXTURE_SCOPE(gvisor_tests, gvisor_fixture)

CAF_TEST(podman_gets_a_script_that_adds_what_gvisor_needs) {
  make_driver();
  auto found = ensure();
  CAF_REQUIRE(found.value);
  CAF_CHECK_EQUAL(found.value->oci_runtime, "runsc");
  CAF_CHECK_EQUAL(found.value->driver, "cli");
  const auto& argv = script->children[0].spec().argv;
  CAF_CHECK(value_of(argv, "--runtime") == wrapper());
  CAF_CHECK(std::find(argv.begin(), argv.end(), "--memory") == argv.end());
  CAF_CHECK(mode_of(wrapper()) == 0700);
  auto expected = fmt::format("#!/bin/sh\nexec '{}/bin/runsc' --ignore-cgroups --network=none "
                              "--oci-seccomp \"$@\"\n",
                              root);
  CAF_CHECK(wrapper_text() == expected);
}

CAF_TEST(the_guests_files_lie_where_its_file_server_can_pass) {
  make_driver();
  CAF_REQUIRE(ensure().value);
  auto line = fmt::format("{}", fmt::join(script->children[0].spec().argv, " "));
  CAF_CHECK(mentions(line, "source=" + env.home + "/.cache/bulkhead/gvisor/guest-"));
  CAF_CHECK(mentions(line, "seccomp=" + env.runtime_dir + "/" + env.instance + "/seccomp-gvisor"));
}

CAF_TEST(limits_that_do_not_hold_are_said_with_the_reason) {
  make_driver();
  auto found = ensure();
  CAF_REQUIRE(found.value);
  CAF_REQUIRE_EQUAL(found.value->warnings.size(), 1u);
  CAF_CHECK(mentions(found.value->warnings[0], "memory and pids limit isn't enforced"));
  CAF_CHECK(mentions(found.value->warnings[0], "gVisor without root"));
  CAF_CHECK(mentions(found.value->warnings[0], "crun or runc"));
}

CAF_TEST(when_its_own_platform_fails_ptrace_is_tried) {
  make_driver();
  engine.refusing[wrapper()] = {126, "Error: OCI runtime error: runsc: creating container: no\n"};
  auto found = ensure();
  CAF_CHECK(mentions(found.failure.message, "creating container"));
  CAF_CHECK(mentions(wrapper_text(), "--platform=ptrace"));
  CAF_CHECK_EQUAL(script->children.size(), 2u);
}

CAF_TEST(a_closed_folder_is_explained) {
  engine.refusing[wrapper()] = {
      126, "Error: OCI runtime error: runsc: creating container: cannot create sandbox: cannot "
           "read client sync file: waiting for sandbox to start: EOF\n"};
  make_driver();
  auto message = ensure().failure.message;
  CAF_CHECK(mentions(message, "first sub-uid of tester"));
  CAF_CHECK(mentions(message, "unset MCP_BRIDGE_OCI_RUNTIME"));
}

CAF_TEST(it_must_be_installed) {
  uninstall("runsc");
  make_driver();
  auto message = ensure().failure.message;
  CAF_CHECK(mentions(message, "MCP_BRIDGE_OCI_RUNTIME says \"runsc\""));
  CAF_CHECK(mentions(message, "apt install runsc"));
}

CAF_TEST(other_drivers_refuse_it) {
  env.config->driver = "rest";
  make_driver();
  auto message = ensure().failure.message;
  CAF_CHECK(mentions(message, "podman's command line only"));
  CAF_CHECK(mentions(message, "unset MCP_BRIDGE_DRIVER"));
}

CAF_TEST(a_cgroup_of_the_host_bounds_it_with_all_its_helpers) {
  use_cgroup_v1({"memory", "pids", "cpu"});
  make_driver();
  CAF_REQUIRE(ensure().value);
  auto handle = create();
  // It makes no cgroup in the run's.
  CAF_CHECK(confine(handle).value);
  auto pids = env.config->pids + gvisor_pids + command_line_pids;
  for (const auto& folder : handle.cgroups) {
    if (folder.starts_with(base_of("pids"))) {
      CAF_CHECK(cgroups->files[folder + "/pids.max"] == std::to_string(pids));
    }
  }
}

CAF_TEST(calls_that_do_not_exist_are_left_to_its_kernel) {
  auto adapted = profile_for_gvisor(
      R"({"syscalls": [{"names": ["clone3"], "action": "SCMP_ACT_ERRNO", "errnoRet": 38},
                       {"names": ["bpf"], "action": "SCMP_ACT_ERRNO", "errnoRet": 1}]})");
  CAF_REQUIRE(adapted);
  auto expected = json::parse(
      R"({"syscalls": [{"names": ["clone3"], "action": "SCMP_ACT_ALLOW"},
                       {"names": ["bpf"], "action": "SCMP_ACT_ERRNO", "errnoRet": 1}]})");
  CAF_CHECK(json::parse(*adapted) == expected);
  CAF_CHECK(!profile_for_gvisor("nothing"));
}

CAF_TEST(only_the_closed_folders_above_let_the_file_server_through) {
  auto top = root + "/home/closed";
  std::filesystem::create_directories(top + "/open/last");
  std::filesystem::permissions(top, std::filesystem::perms{0700});
  std::filesystem::permissions(top + "/open", std::filesystem::perms{0711});
  std::filesystem::permissions(top + "/open/last", std::filesystem::perms{0700});
  CAF_REQUIRE(let_through(top + "/open/last", ::geteuid(), 100'000));
  // The group's bits show the mask of the ACL.
  CAF_CHECK(mode_of(top) == 0710);
  CAF_CHECK(mode_of(top + "/open") == 0711);
  CAF_CHECK(mode_of(top + "/open/last") == 0700);
}

CAF_TEST_FIXTURE_SCOPE_END()
