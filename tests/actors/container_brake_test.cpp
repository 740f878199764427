#define CAF_SUITE container_brake

#include "actors/container_brake.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>

#include <stdlib.h>

#include "actors/host_view.hpp"
#include "tests/support/fake_cgroups.hpp"

#include "caf/test/dsl.hpp"

/// How a container is kept from working, on each kind of host.

using namespace bulkhead;
using namespace bulkhead::testing;

namespace {

const std::string cid(64, 'c');
const std::string other(64, 'd');
const std::string id(32, '1');

struct fixture {
  fixture() {
    auto pattern = (std::filesystem::temp_directory_path() / "bulkhead-brake-XXXXXX").string();
    root = ::mkdtemp(pattern.data());
    std::filesystem::create_directories(root + "/cgroup");
    put("run/cid", cid);
    host.cgroup_root = root + "/cgroup";
    host.proc = root + "/proc";
    host.cgroups = cgroups;
    brake = brake_on(host);
    container = {id, "bulkhead-" + id, root + "/run", 1, 100, {}};
    put("proc/meminfo", "");
    in_cgroup(7, "0::/\n4:cpu:/\n");
    in_cgroup(8, "0::/user.slice/libpod-" + other + ".scope/container\n");
  }
  ~fixture() {
    std::error_code ignored;
    std::filesystem::remove_all(root, ignored);
  }

  void put(const std::string& path, const std::string& text) {
    auto file = std::filesystem::path{root} / path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream{file} << text;
  }

  void in_cgroup(int pid, const std::string& table) {
    put("proc/" + std::to_string(pid) + "/cgroup", table);
  }

  std::string have(const std::string& path) {
    cgroups->folders.insert(root + "/cgroup" + path);
    return root + "/cgroup" + path;
  }

  void use_v2() { put("cgroup/cgroup.controllers", "cpu"); }

  /// The container is in a delegated folder of each controller.
  void use_v1(const std::string& controllers = "cpu") {
    auto path = "/bulkhead/0123456789abcdef-" + id + "/" + cid;
    std::string table = "0::/\n";
    for (std::size_t from = 0; from <= controllers.size();) {
      auto to = std::min(controllers.find(' ', from), controllers.size());
      auto name = controllers.substr(from, to - from);
      table += "3:" + name + ":" + path + "\n";
      folders[name] = have("/" + name + path);
      from = to + 1;
    }
    in_cgroup(9, table);
    cgroups->files[folders["cpu"] + "/cpu.cfs_quota_us"] = "50000\n";
    cgroups->files[folders["cpu"] + "/cpu.cfs_period_us"] = "100000\n";
  }

  std::string cpu(const std::string& file) { return cgroups->files[folders["cpu"] + "/" + file]; }

  std::string root;
  host_view host;
  std::shared_ptr<fake_cgroups> cgroups = std::make_shared<fake_cgroups>();
  std::map<std::string, std::string> folders; ///< by controller (v1)
  std::shared_ptr<container_brake> brake;
  container_handle container;
};

} // namespace

CAF_TEST_FIXTURE_SCOPE(container_brake_tests, fixture)

CAF_TEST(a_container_on_cgroup_v2_is_frozen) {
  use_v2();
  // podman's monitor has the container's id in the name of its cgroup, too.
  in_cgroup(1, "0::/user.slice/libpod-conmon-" + cid + ".scope\n");
  in_cgroup(9, "0::/user.slice/libpod-" + cid + ".scope/container\n");
  auto folder = have("/user.slice/libpod-" + cid + ".scope");
  auto where = brake->find(container);
  CAF_CHECK_EQUAL(where.unified, folder);
  auto held = brake->hold(where);
  CAF_CHECK(held.how == brake_kind::frozen);
  CAF_CHECK_EQUAL(cgroups->files[folder + "/cgroup.freeze"], "1");
  CAF_CHECK(brake->release(held));
  CAF_CHECK_EQUAL(cgroups->files[folder + "/cgroup.freeze"], "0");
}

CAF_TEST(on_v1_the_freezer_goes_before_the_quota) {
  use_v1("cpu freezer");
  auto held = brake->hold(brake->find(container));
  CAF_CHECK(held.how == brake_kind::frozen);
  CAF_CHECK_EQUAL(cgroups->files[folders["freezer"] + "/freezer.state"], "FROZEN");
  CAF_CHECK_EQUAL(cpu("cpu.cfs_quota_us"), "50000\n");
  CAF_CHECK(brake->release(held));
  CAF_CHECK_EQUAL(cgroups->files[folders["freezer"] + "/freezer.state"], "THAWED");
}

CAF_TEST(without_a_freezer_it_gets_the_least_that_the_kernel_gives) {
  use_v1();
  auto held = brake->hold(brake->find(container));
  CAF_CHECK(held.how == brake_kind::throttled);
  CAF_CHECK_EQUAL(cpu("cpu.cfs_quota_us"), "1000");
  CAF_CHECK_EQUAL(cpu("cpu.cfs_period_us"), "1000000");
  CAF_CHECK(brake->release(held));
  CAF_CHECK_EQUAL(cpu("cpu.cfs_quota_us"), "50000");
  CAF_CHECK_EQUAL(cpu("cpu.cfs_period_us"), "100000");
}

CAF_TEST(a_quota_that_is_refused_leaves_the_period_as_it_was) {
  use_v1();
  cgroups->refused.insert(folders["cpu"] + "/cpu.cfs_quota_us");
  auto held = brake->hold(brake->find(container));
  CAF_CHECK(held.how == brake_kind::none);
  CAF_CHECK_EQUAL(cpu("cpu.cfs_period_us"), "100000");
  CAF_CHECK(brake->release(held));
}

CAF_TEST(a_container_without_cgroups_of_its_own_is_not_held) {
  use_v2();
  auto where = brake->find(container);
  CAF_CHECK(where == container_cgroups{});
  auto held = brake->hold(where);
  CAF_CHECK(held.how == brake_kind::none);
  CAF_CHECK(cgroups->files.empty());
  CAF_CHECK(brake->release(held));
}

CAF_TEST(a_cgroup_that_is_not_ours_is_left_alone) {
  use_v2();
  in_cgroup(9, "0::/docker/" + cid + "\n");
  auto folder = have("/docker/" + cid);
  cgroups->refused.insert(folder + "/cgroup.freeze");
  CAF_CHECK(brake->hold(brake->find(container)).how == brake_kind::none);
}

CAF_TEST(a_container_that_has_gone_is_released_all_the_same) {
  use_v1();
  auto held = brake->hold(brake->find(container));
  cgroups->folders.clear();
  CAF_CHECK(brake->release(held));
}

CAF_TEST(one_that_can_not_be_released_is_told) {
  use_v1();
  auto held = brake->hold(brake->find(container));
  cgroups->refused.insert(folders["cpu"] + "/cpu.cfs_quota_us");
  CAF_CHECK(!brake->release(held));
}

CAF_TEST(a_container_alone_in_the_folder_of_its_run_is_found_by_the_runs_id) {
  std::filesystem::remove(root + "/run/cid");
  in_cgroup(9, "1:cpu:/bulkhead/0123456789abcdef-" + id + "\n");
  CAF_CHECK_EQUAL(brake->find(container).cpu, root + "/cgroup/cpu/bulkhead/0123456789abcdef-" + id);
}

CAF_TEST(what_a_dead_instance_held_can_be_ended) {
  use_v1("cpu freezer");
  brake->hold(brake->find(container));
  auto cpu_folder = folders["cpu"];
  cgroups->files[cpu_folder + "/cpu.cfs_quota_us"] = "1000";
  auto outer = [](const std::string& folder) { return folder.substr(0, folder.rfind('/')); };
  have("/cpu/bulkhead/0123456789abcdef-" + id);
  have("/freezer/bulkhead/0123456789abcdef-" + id);
  let_work(*cgroups, {outer(cpu_folder), outer(folders["freezer"])});
  CAF_CHECK_EQUAL(cpu("cpu.cfs_quota_us"), "-1");
  CAF_CHECK_EQUAL(cgroups->files[folders["freezer"] + "/freezer.state"], "THAWED");
}

CAF_TEST_FIXTURE_SCOPE_END()
