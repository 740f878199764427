#define CAF_SUITE constraint_probe

#include "actors/constraint_rows.hpp"
#include "tests/support/driver_fixture.hpp"

/// Doctor's rows: what a container in order shows, and each thing that may be wrong.

using namespace bulkhead;
using namespace bulkhead::testing;
using nlohmann::json;

namespace {

json scratch(std::uint64_t mebibytes) {
  return {{"type", "tmpfs"},
          {"options", {"rw", "noexec", "nosuid", "nodev"}},
          {"size", mebibytes * mebibyte}};
}

/// What the probe tells of a container in order.
json good_facts() {
  return {{"python", "3.13.5"},
          {"status",
           {{"Uid", "65534\t65534\t65534\t65534"},
            {"Gid", "65534\t65534\t65534\t65534"},
            {"CapInh", "0000000000000000"},
            {"CapPrm", "0000000000000000"},
            {"CapEff", "0000000000000000"},
            {"CapBnd", "0000000000000000"},
            {"CapAmb", "0000000000000000"},
            {"NoNewPrivs", "1"},
            {"Seccomp", "2"}}},
          {"interfaces", {"lo"}},
          {"routes", 0},
          {"mounts",
           {{"/", {{"type", "overlay"}, {"options", {"ro", "relatime"}}, {"size", 1}}},
            {"/tmp", scratch(64)},
            {"/workspace", scratch(128)},
            {"/dev/shm", scratch(64)},
            {"/ipc", {{"type", "ext4"}, {"options", {"ro", "noexec"}}}},
            {"/projects", {{"type", "ext4"}, {"options", {"rw", "noexec"}}}}}},
          {"writable",
           {{"/", "EROFS"},
            {"/run", "EROFS"},
            {"/var/tmp", "EROFS"},
            {"/var", "EROFS"},
            {"/etc", "EROFS"},
            {"/usr", "EROFS"},
            {"/dev", "EACCES"},
            {"/ipc", "EROFS"},
            {"/projects", "ok"},
            {"/tmp", "ok"},
            {"/workspace", "ok"},
            {"/dev/shm", "ok"}}},
          {"programs", {{"/tmp", "EACCES"}, {"/workspace", "EACCES"}, {"/dev/shm", "EACCES"}}},
          {"calls",
           {{"socket(AF_NETLINK)", "EPERM"},
            {"socket(AF_PACKET)", "EPERM"},
            {"socket(AF_VSOCK)", "EPERM"},
            {"chroot", "EPERM"}}},
          {"ulimits", {{"nofile", 1024}, {"nproc", 4096}, {"fsize", 134217728}, {"core", 0}}},
          {"environment", {"HOME", "HOSTNAME", "LANG", "PATH"}},
          {"init", "/run/podman-init"},
          {"limits",
           {{"memory", "100663296"}, {"swap", "0"}, {"pids", "64"}, {"cpu", "50000 100000"}}}};
}

struct probe_fixture : driver_fixture {
  probe_fixture() {
    engine.facts = good_facts();
    env.config->cpus = 0.5;
    put("proc/4242/status", "Name:\tcatatonit\nUid:\t165534\t165534\t165534\t165534\n");
    be_in_cgroup("libpod-");
  }

  /// The container's first process is in a cgroup (v2) of that name and the container's id.
  void be_in_cgroup(const std::string& name) {
    engine.started = [this, name](const std::string& cid) {
      put("proc/4242/cgroup", "0::/user.slice/" + name + cid + ".scope/container\n");
      cgroups->folders.insert(root + "/cgroup/user.slice/" + name + cid + ".scope");
    };
  }

  std::vector<constraint_row> rows() {
    make_driver();
    auto found = get<runtime_report>(probe_atom::value);
    CAF_REQUIRE(found.value);
    CAF_CHECK(engine.containers.empty());
    stop_driver();
    return found.value->constraints;
  }
};

/// The names of the rows that don't hold, of a container in order but for `patch`.
std::string broken(const json& patch, constraint_evidence evidence = {}) {
  settings config;
  config.cpus = 0.5;
  runtime_facts facts;
  facts.outside_uid = 165'534;
  if (evidence.limits.memory == 0) {
    evidence = {{96 * mebibyte, 64, 0.5}, 165'534, 1000, 62, 128, true, true, brake_kind::frozen};
  }
  auto inside = good_facts();
  inside.merge_patch(patch);
  // As it comes from a container: numbers of a literal are signed, those of a text are not.
  inside = json::parse(inside.dump());
  std::string names;
  for (const auto& row : constraint_rows(config, facts, inside, evidence, "do this")) {
    if (!row.held) {
      CAF_CHECK(!row.remedy.empty());
      names += (names.empty() ? "" : ", ") + row.name;
    }
  }
  return names;
}

} // namespace

CAF_TEST_FIXTURE_SCOPE(constraint_probe_tests, probe_fixture)

CAF_TEST(a_container_in_order_holds_every_constraint) {
  auto found = rows();
  CAF_CHECK_EQUAL(found.size(), 22u);
  for (const auto& row : found) {
    CAF_CHECK(row.held);
    CAF_CHECK(row.remedy.empty());
    CAF_CHECK(!row.asked.empty() && !row.found.empty());
  }
}

CAF_TEST(gvisor_is_judged_by_what_it_tells) {
  runtime_facts facts;
  facts.outside_uid = 165'534;
  facts.gvisor = gvisor_facts{{}, 100'000};
  // Its kernel has a sub-uid of its own; it lists no ambient capabilities, nosuid and nodev.
  constraint_evidence evidence{{96 * mebibyte, 64, {}}, 165'533, 1000, 62, 128, true, true,
                               brake_kind::frozen};
  auto inside = good_facts();
  inside["status"].erase("CapAmb");
  inside["mounts"]["/tmp"]["options"] = {"rw", "noexec"};
  inside = json::parse(inside.dump());
  std::vector<std::string> names;
  for (const auto& row : constraint_rows({}, facts, inside, evidence, "do this")) {
    if (!row.held) {
      names.push_back(row.name);
      CAF_CHECK(mentions(row.remedy, "crun or runc"));
    }
  }
  const std::vector<std::string> expected = {"/tmp"};
  CAF_CHECK_EQUAL(names, expected);
  evidence.uid_on_host = 1000;
  auto rows = constraint_rows({}, facts, inside, evidence, "do this");
  auto outside = std::find_if(rows.begin(), rows.end(),
                              [](const auto& row) { return row.name == "user outside"; });
  CAF_REQUIRE(outside != rows.end());
  CAF_CHECK(!outside->held);
}

CAF_TEST(each_thing_that_is_wrong_is_found) {
  auto check = [](const std::string& row, const json& patch) {
    CAF_CHECK_EQUAL(broken(patch), row);
  };
  check("network", {{"interfaces", {"eth0", "lo"}}});
  check("network", {{"routes", 1}});
  check("other sockets", {{"calls", {{"socket(AF_VSOCK)", "ok"}}}});
  check("root file system", {{"mounts", {{"/", {{"options", {"rw"}}}}}}});
  check("other writable folders", {{"writable", {{"/run", "ok"}}}});
  check("/tmp", {{"mounts", {{"/tmp", {{"size", 1}}}}}});
  check("/tmp", {{"programs", {{"/tmp", "ok"}}}});
  check("/workspace", {{"mounts", {{"/workspace", {{"options", {"rw", "nosuid", "nodev"}}}}}}});
  check("/dev/shm", {{"mounts", {{"/dev/shm", {{"type", "overlay"}}}}}});
  check("user inside", {{"status", {{"Uid", "0\t0\t0\t0"}}}});
  check("user inside", {{"status", {{"Gid", "65534\t65534\t0\t65534"}}}});
  check("capabilities", {{"status", {{"CapBnd", "00000000a80425fb"}}}});
  check("capabilities", {{"status", {{"CapEff", nullptr}}}});
  check("no new privileges", {{"status", {{"NoNewPrivs", "0"}}}});
  check("seccomp", {{"status", {{"Seccomp", "0"}}}});
  check("seccomp", {{"calls", {{"chroot", "ok"}}}});
  check("swap", {{"limits", {{"swap", "max"}}}});
  check("cpus", {{"limits", {{"cpu", "max 100000"}}}});
  check("ulimits", {{"ulimits", {{"core", 1}}}});
  check("ulimits", {{"ulimits", {{"nofile", -1}}}});
  check("/ipc", {{"writable", {{"/ipc", "ok"}}}});
  check("/projects", {{"writable", {{"/projects", "EACCES"}}}});
  check("init process", {{"init", "python3"}});
  check("environment", {{"environment", {"PATH", "SECRET"}}});
}

CAF_TEST(limits_are_found_out_by_using_them_up) {
  engine.survives_memory = true;
  engine.threads = 128;
  std::string names;
  for (const auto& row : rows()) {
    names += row.held ? "" : row.name + "; ";
  }
  CAF_CHECK_EQUAL(names, "memory limit; pids limit; ");
}

CAF_TEST(what_is_seen_from_outside_counts_too) {
  constraint_evidence evidence{{96 * mebibyte, 64, 0.5}, 1000, 1000, 62, 128, true, true,
                               brake_kind::frozen};
  CAF_CHECK_EQUAL(broken(json::object(), evidence), "user outside");
  evidence.uid_on_host.reset();
  CAF_CHECK_EQUAL(broken(json::object(), evidence), "user outside");
  evidence.uid_on_host = 165'534;
  evidence.kill_was_told = false;
  CAF_CHECK_EQUAL(broken(json::object(), evidence), "memory limit");
  evidence.kill_was_told = true;
  evidence.threads.reset();
  CAF_CHECK_EQUAL(broken(json::object(), evidence), "pids limit");
  evidence.threads = 62;
  evidence.idle = brake_kind::throttled;
  CAF_CHECK_EQUAL(broken(json::object(), evidence), "");
  evidence.idle = brake_kind::none;
  CAF_CHECK_EQUAL(broken(json::object(), evidence), "idle sessions");
}

CAF_TEST(an_answer_that_makes_no_sense_holds_nothing_and_breaks_nothing) {
  engine.facts = json::array({1, "x"});
  auto found = rows();
  CAF_CHECK_EQUAL(found.size(), 22u);
  std::string held;
  for (const auto& row : found) {
    held += row.held ? row.name + "; " : "";
  }
  // What is seen from outside.
  CAF_CHECK_EQUAL(held, "user outside; memory limit; pids limit; idle sessions; ");
}

CAF_TEST(a_full_probe_doesn_t_take_kept_findings) {
  make_driver();
  CAF_REQUIRE(ensure().value);
  auto before = script->children.size();
  CAF_REQUIRE(get<runtime_report>(probe_atom::value).value);
  CAF_CHECK_EQUAL(script->children.size(), before + 2);
}

CAF_TEST_FIXTURE_SCOPE_END()
