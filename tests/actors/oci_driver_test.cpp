#define CAF_SUITE oci_driver

#include "tests/support/driver_fixture.hpp"
#include "tests/support/fake_oci.hpp"

/// crun and runc without an engine: what is found, started, told of its end, and removed.

using namespace bulkhead;
using namespace bulkhead::testing;

namespace {

namespace fs = std::filesystem;

struct oci_fixture : driver_fixture {
  oci_fixture() {
    env.config->runtime = "oci";
    env.config->driver.clear();
    install("catatonit");
    oci.serve(*script);
  }

  void use_systemd() { put("xdg/systemd/private", ""); }

  void use_delegated_cgroups() {
    use_cgroup_v1({"memory", "pids", "cpu"});
    engine.limits = {{"memory", "536870912"}, {"memsw", "536870912"}, {"pids", "128"}};
  }

  /// Asks for containers at the same time, one for each letter; how many there are then.
  std::size_t create_at_once(std::string_view letters) {
    std::size_t made = 0;
    std::size_t refused = 0;
    sys.spawn([&, to = runtime, events = owner()](caf::event_based_actor* self) {
      for (char letter : letters) {
        auto folder = env.runtime_dir + "/" + letter;
        fs::create_directories(folder);
        self->request(to, 60min, create_atom::value,
                      container_request{std::string(32, letter), folder}, events)
            .then([&](container_handle&) { ++made; }, [&](const caf::error&) { ++refused; });
      }
    });
    pass_until([&] { return made + refused == letters.size(); });
    return made;
  }

  const std::vector<std::string>& latest_command() const {
    return script->children.back().spec().argv;
  }

  fake_oci::container& latest() { return oci.containers.rbegin()->second; }

  nlohmann::json config() { return fake_oci::config_of(latest()); }

  std::string store() const { return env.home + "/.cache/bulkhead/rootfs"; }

  fake_oci oci{engine, cgroups};
};

bool holds(const std::vector<std::string>& argv, const std::string& word) {
  return std::find(argv.begin(), argv.end(), word) != argv.end();
}

} // namespace

CAF_TEST_FIXTURE_SCOPE(oci_driver_tests, oci_fixture)

CAF_TEST(what_is_used_is_reported) {
  make_driver();
  auto found = ensure();
  CAF_REQUIRE(found.value);
  CAF_CHECK_EQUAL(found.value->driver, "oci");
  CAF_CHECK_EQUAL(found.value->engine, "podman");
  CAF_CHECK_EQUAL(found.value->oci_runtime, "crun");
  CAF_CHECK_EQUAL(found.value->oci_version, "1.2.3");
  CAF_CHECK_EQUAL(found.value->python, "3.13.5");
  CAF_CHECK(found.value->warnings.empty());
  // The probe left nothing.
  CAF_CHECK(!latest().running);
  CAF_CHECK(fs::is_empty(env.runtime_dir + "/" + env.instance + "/runs"));
}

CAF_TEST(a_container_is_started_by_the_oci_runtime_alone) {
  make_driver();
  CAF_REQUIRE(ensure().value);
  script->commands.clear();
  auto handle = create();
  CAF_CHECK(script->commands.empty());
  const auto& argv = latest_command();
  CAF_CHECK_EQUAL(argv[0], "nsenter");
  CAF_CHECK_EQUAL(value_of(argv, "--target"), std::to_string(oci.holder));
  CAF_CHECK_EQUAL(value_of(argv, "--root"), handle.folder + "/oci");
  CAF_CHECK_EQUAL(value_of(argv, "--bundle"), handle.folder);
  CAF_CHECK(holds(argv, root + "/bin/crun"));
  const auto& spec = script->children.back().spec();
  CAF_CHECK_EQUAL(spec.successor_file, handle.folder + "/pid");
  CAF_CHECK(!spec.kill_group_at_exit);
  CAF_CHECK_EQUAL(argv.back().size(), 64u);
  auto args = config()["process"]["args"];
  CAF_CHECK_EQUAL(args.back().get<std::string>(), "/ipc/entrypoint.py");
}

CAF_TEST(containers_share_the_unpacked_image_and_the_namespaces) {
  make_driver();
  create();
  auto first = config()["root"];
  create();
  CAF_CHECK_EQUAL(oci.unpacked, 1);
  CAF_CHECK_EQUAL(oci.holders, 1);
  CAF_CHECK(config()["root"] == first);
  CAF_CHECK(first["readonly"].get<bool>());
  auto folder = std::string(64, 'a');
  CAF_CHECK(fs::is_directory(store() + "/" + folder));
  CAF_CHECK(mentions(first["path"].get<std::string>(), "/" + folder));
  CAF_CHECK(!mentions(first["path"].get<std::string>(), env.home));
}

CAF_TEST(root_in_a_container_is_the_first_sub_uid) {
  make_driver();
  create();
  nlohmann::json ids = {{{"containerID", 0}, {"hostID", 1}, {"size", 65536}}};
  CAF_CHECK(config()["linux"]["uidMappings"] == ids);
  CAF_CHECK(config()["linux"]["gidMappings"] == ids);
}

CAF_TEST(the_holder_of_the_namespaces_is_replaced_when_it_has_died) {
  make_driver();
  create();
  oci.kill_holder();
  create();
  CAF_CHECK_EQUAL(oci.holders, 2);
  CAF_CHECK_EQUAL(value_of(latest_command(), "--target"), std::to_string(oci.holder));
}

CAF_TEST(starts_at_the_same_time_share_the_next_holder_or_its_failure) {
  make_driver();
  create();
  oci.kill_holder();
  oci.hold_failure = "mount: /mnt: permission denied.";
  CAF_CHECK_EQUAL(create_at_once("abc"), 0u);
  oci.hold_failure.clear();
  CAF_REQUIRE(ensure().value);
  oci.kill_holder();
  auto before = oci.holders;
  CAF_CHECK_EQUAL(create_at_once("def"), 3u);
  CAF_CHECK_EQUAL(oci.holders, before + 1);
  CAF_CHECK_EQUAL(value_of(latest_command(), "--target"), std::to_string(oci.holder));
}

CAF_TEST(a_start_that_missed_the_holder_is_one_that_another_sandbox_can_take) {
  make_driver();
  auto handle = create();
  auto complaint =
      fmt::format("nsenter: cannot open /proc/{}/ns/user: No such file or directory\n", oci.holder);
  // It is there: then the host refuses.
  CAF_CHECK(classify(handle, 1, complaint).reason.code == errc::unavailable);
  handle = create();
  oci.kill_holder();
  CAF_CHECK(classify(handle, 1, complaint).reason.code == errc::closed);
  create();
  CAF_CHECK(classify(handle, 1, complaint).reason.code == errc::closed);
  auto other = classify(handle, 1, "nsenter: failed to execute crun: no\n");
  CAF_CHECK(other.reason.code == errc::unavailable);
}

CAF_TEST(namespaces_that_can_not_be_held_say_why) {
  oci.hold_failure = "mount: /mnt: permission denied.";
  make_driver();
  auto message = ensure().failure.message;
  CAF_CHECK(mentions(message, "permission denied"));
  CAF_CHECK(mentions(message, "apt install"));
}

CAF_TEST(an_image_that_can_not_be_unpacked_says_why_and_leaves_nothing) {
  oci.unpack_failure = "tar: no space left on device";
  make_driver();
  CAF_CHECK(mentions(ensure().failure.message, "no space left on device"));
  for (const auto& entry : fs::directory_iterator{store()}) {
    CAF_CHECK(!entry.is_directory());
  }
  oci.unpack_failure.clear();
  CAF_CHECK(ensure().value);
}

CAF_TEST(an_image_of_another_id_is_unpacked_for_the_next_container) {
  put("store/overlay-images/images.json", "1");
  make_driver();
  create();
  engine.image_id = std::string(64, 'b');
  put("store/overlay-images/images.json", "22");
  create();
  CAF_CHECK_EQUAL(oci.unpacked, 2);
  CAF_CHECK(mentions(config()["root"]["path"].get<std::string>(), std::string(64, 'b')));
}

CAF_TEST(a_runtime_that_refuses_the_host_is_passed_over) {
  oci.refusing["crun"] = "cgroups in hybrid mode not supported";
  make_driver();
  auto found = ensure();
  CAF_REQUIRE(found.value);
  CAF_CHECK_EQUAL(found.value->oci_runtime, "runc");
}

CAF_TEST(when_none_works_the_reasons_of_all_are_given) {
  oci.refusing["crun"] = "cgroups in hybrid mode not supported";
  oci.refusing["runc"] = "time=\"x\" level=error msg=\"runc run failed: no \\\"x\\\"\"";
  make_driver();
  auto message = ensure().failure.message;
  CAF_CHECK(mentions(message, "crun exited with 1: cgroups in hybrid mode not supported"));
  CAF_CHECK(mentions(message, "install runc"));
  CAF_CHECK(mentions(message, "runc exited with 1: runc run failed: no \"x\""));
}

CAF_TEST(missing_programs_have_their_remedies) {
  uninstall("crun");
  uninstall("runc");
  make_driver();
  CAF_CHECK(mentions(ensure().failure.message, "apt install crun"));
  stop_driver();
  env.config->oci_runtime = "youki";
  make_driver();
  CAF_CHECK(mentions(ensure().failure.message, "MCP_BRIDGE_OCI_RUNTIME says \"youki\""));
  stop_driver();
  uninstall("podman");
  make_driver();
  CAF_CHECK(mentions(ensure().failure.message, "MCP_BRIDGE_RUNTIME=oci"));
}

CAF_TEST(a_driver_that_needs_an_engine_contradicts_it) {
  env.config->driver = "rest";
  make_driver();
  CAF_CHECK(mentions(ensure().failure.message, "MCP_BRIDGE_DRIVER=rest"));
}

CAF_TEST(the_accounts_systemd_sets_the_limits_where_there_is_one) {
  use_systemd();
  make_driver();
  create();
  CAF_CHECK(holds(latest_command(), "--systemd-cgroup"));
  auto linux = config()["linux"];
  CAF_CHECK(mentions(linux["cgroupsPath"].get<std::string>(), "user.slice:bulkhead:"));
  CAF_CHECK_EQUAL(linux["resources"]["memory"]["limit"].get<std::uint64_t>(), 512 * mebibyte);
  CAF_CHECK_EQUAL(linux["resources"]["memory"]["swap"].get<std::uint64_t>(), 512 * mebibyte);
  CAF_CHECK_EQUAL(linux["resources"]["pids"]["limit"].get<std::uint64_t>(), 128u);
}

CAF_TEST(on_v1_the_limits_are_set_as_for_an_engine) {
  use_delegated_cgroups();
  make_driver();
  auto handle = create();
  CAF_CHECK(script->children.back().spec().cgroups == handle.cgroups);
  CAF_CHECK(config()["linux"]["resources"].empty());
  CAF_CHECK(confine(handle).value);
  auto inner = handle.cgroups[0] + "/" + latest().id;
  CAF_CHECK_EQUAL(cgroups->files[inner + "/memory.limit_in_bytes"], "536870912");
}

CAF_TEST(on_v1_the_runs_own_cgroup_is_limited_when_the_runtime_makes_none) {
  use_delegated_cgroups();
  oci.without_inner_cgroup = true;
  make_driver();
  auto handle = create();
  CAF_CHECK(confine(handle).value);
  CAF_CHECK_EQUAL(cgroups->files[handle.cgroups[0] + "/memory.limit_in_bytes"], "536870912");
  CAF_CHECK_EQUAL(cgroups->files[handle.cgroups[1] + "/pids.max"], "128");
  CAF_CHECK(destroy(handle).value);
  CAF_CHECK_EQUAL(cgroups->folders.size(), 3u);
}

CAF_TEST(without_any_cgroup_there_is_a_warning_and_strict_refuses) {
  use_cgroup_v1({});
  make_driver();
  auto found = ensure();
  CAF_REQUIRE(found.value);
  CAF_CHECK_EQUAL(found.value->warnings.size(), 1u);
  stop_driver();
  env.config->strict = true;
  make_driver();
  CAF_CHECK(mentions(ensure().failure.message, "MCP_BRIDGE_STRICT"));
}

CAF_TEST(running_out_of_memory_is_what_the_cgroup_counts) {
  use_delegated_cgroups();
  make_driver();
  auto handle = create();
  CAF_CHECK(confine(handle).value);
  auto cgroup = oci.cgroup_of(latest());
  oci.end(*script, handle.child, 137);
  CAF_CHECK(classify(handle, 137).reason.code != errc::out_of_memory);
  oci.count_kills(cgroup, 1);
  CAF_CHECK(classify(handle, 137).reason.code == errc::out_of_memory);
}

CAF_TEST(running_out_of_memory_is_told_also_if_the_program_was_ready_before_the_pid_file) {
  use_delegated_cgroups();
  make_driver();
  auto handle = create();
  fs::remove(handle.folder + "/pid");
  CAF_CHECK(confine(handle).value);
  auto cgroup = oci.cgroup_of(latest());
  oci.end(*script, handle.child, 137);
  oci.count_kills(cgroup, 1);
  CAF_CHECK(classify(handle, 137).reason.code == errc::out_of_memory);
}

CAF_TEST(where_the_cgroup_went_with_its_last_process_the_one_above_tells) {
  use_systemd();
  make_driver();
  auto handle = create();
  // Something else was killed there before.
  oci.count_kills("/user.slice/a.service", 3);
  oci.count_kills(oci.cgroup_of(latest()), 0);
  CAF_CHECK(confine(handle).value);
  fs::remove_all(root + "/cgroup" + oci.cgroup_of(latest()));
  oci.end(*script, handle.child, 137);
  CAF_CHECK(classify(handle, 137).reason.code != errc::out_of_memory);
  oci.count_kills("/user.slice/a.service", 4);
  CAF_CHECK(classify(handle, 137).reason.code == errc::out_of_memory);
}

CAF_TEST(an_engines_exit_codes_are_the_programs_own_here) {
  make_driver();
  auto handle = create();
  CAF_CHECK(confine(handle).value);
  for (auto code : {125, 126, 127}) {
    auto verdict = classify(handle, code, "Error: mine");
    CAF_CHECK(verdict.reason.code == errc::none);
    CAF_CHECK_EQUAL(verdict.exit_code, code);
  }
}

CAF_TEST(a_start_that_fails_says_what_the_runtime_said) {
  make_driver();
  auto handle = create();
  auto verdict = classify(handle, 1, "crun: no such file\n");
  CAF_CHECK(verdict.reason.code == errc::unavailable);
  CAF_CHECK(mentions(verdict.reason.message, "crun exited with 1: crun: no such file"));
}

CAF_TEST(one_that_ended_by_itself_costs_no_command) {
  use_delegated_cgroups();
  make_driver();
  auto handle = create();
  CAF_CHECK(confine(handle).value);
  script->commands.clear();
  oci.end(*script, handle.child, 0);
  CAF_CHECK(destroy(handle).value);
  CAF_CHECK(script->commands.empty());
  CAF_CHECK_EQUAL(cgroups->folders.size(), 3u);
}

CAF_TEST(one_that_runs_is_killed_by_its_first_process) {
  use_delegated_cgroups();
  make_driver();
  auto handle = create();
  script->commands.clear();
  CAF_CHECK(destroy(handle).value);
  CAF_CHECK(!latest().running);
  CAF_CHECK(script->commands.empty());
  CAF_CHECK_EQUAL(cgroups->folders.size(), 3u);
}

CAF_TEST(a_cgroup_that_the_runtime_made_is_removed_by_it) {
  make_driver();
  auto handle = create();
  oci.end(*script, handle.child, 0);
  script->commands.clear();
  CAF_CHECK(destroy(handle).value);
  CAF_CHECK_EQUAL(script->count("delete --force " + latest().id), 1u);
}

CAF_TEST(what_a_start_that_was_cut_short_has_made_is_removed_by_the_runtime) {
  use_delegated_cgroups();
  make_driver();
  CAF_REQUIRE(ensure().value);
  oci.starts_hang = true;
  auto handle = create();
  CAF_CHECK(destroy(handle).value);
  CAF_CHECK(!latest().running);
  CAF_CHECK_EQUAL(script->count("delete --force " + latest().id), 1u);
  CAF_CHECK(fs::is_empty(handle.folder + "/oci"));
}

CAF_TEST(what_dead_instances_left_is_removed_by_the_runtime_that_made_it) {
  auto run = env.runtime_dir + "/dddddddddddddddd/runs/" + std::string(32, '1');
  auto id = std::string(64, '2');
  fs::create_directories(run + "/oci/" + id);
  std::ofstream{run + "/oci/" + id + "/state.json"} << R"({"init_process_pid": 4242})";
  fs::last_write_time(env.runtime_dir + "/dddddddddddddddd",
                      fs::file_time_type::clock::now() - 60s);
  make_driver();
  auto swept = get<sweep_report>(sweep_atom::value);
  CAF_REQUIRE(swept.value);
  CAF_CHECK_EQUAL(swept.value->containers, 1u);
  CAF_CHECK_EQUAL(swept.value->folders, 1u);
  // The one in use here is crun; the notes are runc's.
  CAF_CHECK_EQUAL(script->count("runc --root " + run + "/oci delete --force " + id), 1u);
}

CAF_TEST_FIXTURE_SCOPE_END()
