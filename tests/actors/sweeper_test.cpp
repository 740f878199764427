#define CAF_SUITE sweeper

#include <csignal>
#include <spawn.h>
#include <sys/wait.h>

#include "actors/instance.hpp"
#include "actors/io/process_table.hpp"
#include "tests/support/driver_fixture.hpp"

/// What dead instances left, and what must not be touched.

using namespace bulkhead;
using namespace bulkhead::testing;

namespace {

const std::string dead = "dddddddddddddddd";
const std::string living = "eeeeeeeeeeeeeeee";
const std::string foreign = "ffffffffffffffff";

struct sweep_fixture : driver_fixture {
  sweep_fixture() {
    std::filesystem::create_directories(env.runtime_dir);
    make_instance(dead);
    make_instance(living);
    lock = *instance_lock::acquire(env.runtime_dir, living);
  }

  std::string folder_of(const std::string& instance) const {
    return env.runtime_dir + "/" + instance;
  }

  void make_instance(const std::string& instance, std::chrono::seconds age = 60s) {
    std::filesystem::create_directories(folder_of(instance) + "/runs");
    std::filesystem::last_write_time(folder_of(instance),
                                     std::filesystem::file_time_type::clock::now() - age);
  }

  void add_container(const std::string& name, const std::string& instance, std::string source) {
    engine.containers[name] = {name, instance, std::string(64, '1'), std::move(source), 0, true};
  }

  sweep_report sweep() {
    auto found = get<sweep_report>(sweep_atom::value);
    CAF_REQUIRE(found.value);
    return *found.value;
  }

  std::optional<instance_lock> lock;
};

} // namespace

CAF_TEST_FIXTURE_SCOPE(sweeper_tests, sweep_fixture)

CAF_TEST(containers_and_folders_of_dead_instances_are_removed_and_of_living_ones_left) {
  add_container("bulkhead-1", dead, {});
  add_container("bulkhead-2", living, {});
  add_container("bulkhead-3", env.instance, {});
  make_driver();
  auto swept = sweep();
  CAF_CHECK_EQUAL(swept.containers, 1u);
  CAF_CHECK_EQUAL(swept.folders, 1u);
  CAF_CHECK_EQUAL(engine.containers.count("bulkhead-1"), 0u);
  CAF_CHECK_EQUAL(engine.containers.size(), 2u);
  CAF_CHECK(!std::filesystem::exists(folder_of(dead)));
  CAF_CHECK(std::filesystem::exists(folder_of(living)));
  CAF_CHECK(std::filesystem::exists(folder_of(env.instance)));
}

CAF_TEST(an_instance_without_a_folder_is_known_by_the_mounts_of_its_containers) {
  add_container("bulkhead-ours", foreign, env.runtime_dir + "/" + foreign + "/ipc");
  add_container("bulkhead-theirs", foreign, "/run/user/4000/bulkhead/" + foreign + "/ipc");
  make_driver();
  CAF_CHECK_EQUAL(sweep().containers, 1u);
  CAF_CHECK_EQUAL(engine.containers.count("bulkhead-ours"), 0u);
  CAF_CHECK_EQUAL(engine.containers.count("bulkhead-theirs"), 1u);
}

CAF_TEST(what_was_half_made_goes_and_holds_nothing_else_up) {
  make_instance(dead, 60s);
  add_container("bulkhead-half", foreign, {});
  engine.failing["inspect"] = {125, "Error: container not known\n"};
  make_driver();
  auto swept = sweep();
  CAF_CHECK_EQUAL(swept.containers, 1u);
  CAF_CHECK_EQUAL(engine.containers.count("bulkhead-half"), 0u);
  CAF_CHECK(!std::filesystem::exists(folder_of(dead)));
}

CAF_TEST(an_instance_that_has_just_begun_is_left_alone) {
  make_instance(foreign, 1s);
  add_container("bulkhead-new", foreign, folder_of(foreign) + "/ipc");
  make_driver();
  CAF_CHECK_EQUAL(sweep().containers, 0u);
  CAF_CHECK(std::filesystem::exists(folder_of(foreign)));
}

CAF_TEST(containers_that_only_the_oci_runtime_has_are_deleted_there) {
  auto entry = [&](char digit, const std::string& instance) {
    return nlohmann::json{
        {"id", std::string(64, digit)},
        {"bundle", "/nowhere"},
        {"annotations", {{"io.podman.annotations.cid-file", folder_of(instance) + "/runs/x/cid"}}}};
  };
  // A runtime that doesn't list annotations: they are read from the bundle.
  put("bundle/config.json", entry('4', dead).dump());
  auto bare = nlohmann::json{{"id", std::string(64, '4')}, {"bundle", root + "/bundle"}};
  engine.oci_list = nlohmann::json{entry('1', dead),
                                   entry('2', living),
                                   entry('3', env.instance),
                                   bare,
                                   {{"id", std::string(64, '5')}, {"bundle", "/nowhere"}}}
                        .dump();
  make_driver();
  CAF_CHECK_EQUAL(sweep().containers, 2u);
  CAF_CHECK_EQUAL(script->count("delete --force"), 2u);
  CAF_CHECK_EQUAL(script->count("delete --force " + std::string(64, '1')), 1u);
  CAF_CHECK_EQUAL(script->count("delete --force " + std::string(64, '4')), 1u);
}

CAF_TEST(containers_that_podman_does_not_list_are_known_by_their_folders) {
  auto id = std::string(32, 'c');
  std::filesystem::create_directories(folder_of(dead) + "/runs/" + id);
  std::filesystem::create_directories(folder_of(living) + "/runs/" + std::string(32, 'd'));
  make_driver();
  sweep();
  CAF_CHECK_EQUAL(script->count("--ignore bulkhead-" + id), 1u);
  CAF_CHECK_EQUAL(script->count("--ignore bulkhead-dddd"), 0u);
}

CAF_TEST(cgroups_of_dead_instances_are_cleared) {
  use_cgroup_v1({"memory", "pids"});
  auto id = std::string(32, 'a');
  auto cgroup_of = [&](const std::string& controller, const std::string& instance) {
    auto folder = base_of(controller) + "/" + instance;
    cgroups->folders.insert(folder);
    cgroups->folders.insert(folder + "/" + instance + "-" + id);
    return folder + "/" + instance + "-" + id;
  };
  for (const auto& instance : {living, foreign}) {
    cgroup_of("memory", instance);
    cgroup_of("pids", instance);
  }
  cgroups->folders.insert(base_of("memory") + "/of-somebody-else");
  cgroups->processes[cgroup_of("memory", dead)] = {7777};
  auto cleared = cgroup_of("pids", dead);
  // An instance whose folder lies elsewhere, and one that is gone altogether.
  cgroups->processes[cgroup_of("memory", foreign)] = {8888};
  cgroups->processes[cgroup_of("pids", foreign)] = {8888};
  cgroup_of("pids", std::string(16, '9'));
  engine.limits = {{"memory", "536870912"}, {"pids", "128"}};
  make_driver();
  CAF_CHECK_EQUAL(sweep().cgroups, 2u);
  CAF_CHECK_EQUAL(script->count("sh 7777"), 1u);
  CAF_CHECK_EQUAL(script->count("8888"), 0u);
  CAF_CHECK(!cgroups->folders.contains(cleared));
  CAF_CHECK(!cgroups->folders.contains(base_of("pids") + "/" + dead));
  CAF_CHECK_EQUAL(cgroups->folders.size(), 11u);
}

CAF_TEST(upstream_servers_of_dead_instances_are_ended) {
  // A real process with a mark, as an orphan has it.
  std::string mark = "BULKHEAD_CHILD=" + dead + "/7";
  std::string other = "BULKHEAD_CHILD=" + living + "/8";
  std::string program = "/bin/sleep";
  std::string time = "60";
  std::array<char*, 3> argv = {program.data(), time.data(), nullptr};
  std::array<pid_t, 2> children{};
  std::array<std::string*, 2> marks = {&mark, &other};
  for (std::size_t i = 0; i < 2; ++i) {
    std::array<char*, 2> environment = {marks[i]->data(), nullptr};
    CAF_REQUIRE_EQUAL(posix_spawn(&children[i], program.c_str(), nullptr, nullptr, argv.data(),
                                  environment.data()),
                      0);
  }
  make_driver();
  auto swept = sweep();
  for (auto child : children) {
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
  }
  CAF_CHECK_EQUAL(swept.processes, 1u);
  CAF_CHECK(script->killed_marks == (std::vector<std::string>{dead + "/7"}));
}

CAF_TEST(when_a_part_fails_the_folder_stays_for_the_next_sweep) {
  add_container("bulkhead-1", dead, {});
  make_driver();
  CAF_REQUIRE(ensure().value);
  engine.failing_removals = 1;
  auto first = sweep();
  CAF_CHECK_EQUAL(first.containers, 0u);
  CAF_CHECK_EQUAL(first.folders, 0u);
  CAF_CHECK(std::filesystem::exists(folder_of(dead)));
  CAF_CHECK_EQUAL(sweep().folders, 1u);
  CAF_CHECK(engine.containers.empty());
}

CAF_TEST(the_first_search_is_followed_by_a_sweep_in_the_background) {
  add_container("bulkhead-1", dead, {});
  make_driver();
  CAF_REQUIRE(ensure().value);
  CAF_CHECK_EQUAL(engine.containers.size(), 1u);
  pass_until([&] { return engine.containers.empty(); }, 5s);
  CAF_CHECK(engine.containers.empty());
}

CAF_TEST_FIXTURE_SCOPE_END()
