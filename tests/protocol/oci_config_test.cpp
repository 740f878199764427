#include "protocol/oci_config.hpp"

#include <algorithm>
#include <set>

#include <embedded/image.hpp>
#include <gtest/gtest.h>

namespace bulkhead {
namespace {

using nlohmann::json;
using words = std::vector<std::string>;

container_spec full_spec() {
  container_spec spec;
  spec.name = "bulkhead-0123";
  spec.image = "localhost/bulkhead-sandbox:latest";
  spec.instance = "i-42";
  spec.memory = 512ULL << 20;
  spec.pids = 128;
  spec.cpus = 0.5;
  spec.seccomp_profile = "/run/x/seccomp.json";
  spec.mounts = {{"/run/x/ipc", "/ipc", true}, {"/home/u, v/MCPs", "/projects", false}};
  spec.command = {"python3", "-I", "-S", "/ipc/entrypoint.py"};
  return spec;
}

oci_bundle rootless_bundle() {
  oci_bundle bundle;
  bundle.rootfs = "/mnt/abc";
  bundle.init = "/usr/libexec/podman/catatonit";
  bundle.uids = bundle.gids = {{0, 1, 65536}};
  bundle.seccomp = {{"defaultAction", "SCMP_ACT_ERRNO"}};
  return bundle;
}

json config_of(const oci_bundle& bundle, const container_spec& spec = full_spec()) {
  engine_profile engine;
  engine.nofile = 1000;
  engine.nproc = 2000;
  return oci_config(engine, spec, bundle);
}

json mount_at(const json& config, std::string_view target) {
  for (const auto& each : config["mounts"]) {
    if (each["destination"] == target) {
      return each;
    }
  }
  return nullptr;
}

bool has(const json& list, std::string_view word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

TEST(oci_config, process) {
  auto process = config_of(rootless_bundle())["process"];
  EXPECT_EQ(process["args"],
            (words{"/run/bulkhead-init", "--", "python3", "-I", "-S", "/ipc/entrypoint.py"}));
  EXPECT_EQ(process["user"], (json{{"uid", 65534}, {"gid", 65534}, {"umask", 18}}));
  EXPECT_EQ(process["capabilities"], json::object());
  EXPECT_EQ(process["noNewPrivileges"], true);
  EXPECT_EQ(process["oomScoreAdj"], 1000);
  EXPECT_EQ(process["cwd"], "/workspace");
  EXPECT_FALSE(process.value("terminal", false));
  json limits = {{{"type", "RLIMIT_NOFILE"}, {"hard", 1000}, {"soft", 1000}},
                 {{"type", "RLIMIT_NPROC"}, {"hard", 2000}, {"soft", 2000}},
                 {{"type", "RLIMIT_FSIZE"}, {"hard", 128 << 20}, {"soft", 128 << 20}},
                 {{"type", "RLIMIT_CORE"}, {"hard", 0}, {"soft", 0}}};
  EXPECT_EQ(process["rlimits"], limits);
}

TEST(oci_config, the_environment_is_that_of_the_command_line) {
  auto environment = config_of(rootless_bundle())["process"]["env"];
  EXPECT_EQ(environment.size(), sandbox_environment.size() + 1);
  for (auto variable : sandbox_environment) {
    EXPECT_TRUE(has(environment, variable)) << variable;
  }
  EXPECT_TRUE(has(environment, "HOSTNAME=sandbox"));
}

TEST(oci_config, the_root_is_read_only_and_nothing_else_is_writable_but_scratch_and_projects) {
  auto config = config_of(rootless_bundle());
  EXPECT_EQ(config["root"], (json{{"path", "/mnt/abc"}, {"readonly", true}}));
  std::set<std::string> writable;
  for (const auto& each : config["mounts"]) {
    if (!has(each["options"], "ro")) {
      writable.insert(each["destination"]);
    }
    if (each["destination"] != "/dev") {
      EXPECT_TRUE(has(each["options"], "nosuid")) << each;
    }
  }
  EXPECT_EQ(writable, (std::set<std::string>{"/proc", "/dev", "/dev/pts", "/dev/mqueue", "/dev/shm",
                                             "/tmp", "/workspace", "/projects"}));
}

TEST(oci_config, scratch_folders_have_sizes_and_run_no_programs) {
  auto spec = full_spec();
  spec.tmp_size = 1000;
  spec.workspace_size = 3000;
  auto config = config_of(rootless_bundle(), spec);
  for (const auto& [target, size] : {std::pair{"/tmp", "size=1000"},
                                     {"/workspace", "size=3000"},
                                     {"/dev/shm", "size=67108864"}}) {
    auto mount = mount_at(config, target);
    EXPECT_EQ(mount["type"], "tmpfs");
    EXPECT_EQ(mount["options"], (words{"rw", "noexec", "nosuid", "nodev", size, "mode=1777"}));
  }
  EXPECT_EQ(config["process"]["rlimits"][2]["hard"], 3000);
}

TEST(oci_config, folders_of_the_host_are_mounted_as_they_are_called) {
  auto config = config_of(rootless_bundle());
  auto ipc = mount_at(config, "/ipc");
  EXPECT_EQ(ipc["source"], "/run/x/ipc");
  EXPECT_EQ(ipc["options"], (words{"ro", "rbind", "rprivate", "nosuid", "nodev", "noexec"}));
  auto projects = mount_at(config, "/projects");
  EXPECT_EQ(projects["source"], "/home/u, v/MCPs");
  EXPECT_EQ(projects["options"], (words{"rw", "rbind", "rprivate", "nosuid", "nodev", "noexec"}));
  EXPECT_EQ(mount_at(config, "/run/bulkhead-init")["source"], "/usr/libexec/podman/catatonit");
  EXPECT_TRUE(has(mount_at(config, "/run/bulkhead-init")["options"], "ro"));
  EXPECT_TRUE(has(mount_at(config, "/sys/fs/cgroup")["options"], "ro"));
}

TEST(oci_config, every_namespace_is_its_own) {
  auto linux = config_of(rootless_bundle())["linux"];
  std::set<std::string> types;
  for (const auto& each : linux["namespaces"]) {
    // One with a path would be somebody else's.
    EXPECT_EQ(each.size(), 1U);
    types.insert(each["type"]);
  }
  EXPECT_EQ(types,
            (std::set<std::string>{"pid", "network", "ipc", "uts", "mount", "cgroup", "user"}));
  json all = {{{"containerID", 0}, {"hostID", 1}, {"size", 65536}}};
  EXPECT_EQ(linux["uidMappings"], all);
  EXPECT_EQ(linux["gidMappings"], all);
}

TEST(oci_config, a_rootful_container_has_no_user_namespace) {
  auto bundle = rootless_bundle();
  bundle.uids = bundle.gids = {};
  auto linux = config_of(bundle)["linux"];
  EXPECT_EQ(linux["namespaces"].size(), 6U);
  EXPECT_FALSE(linux.contains("uidMappings"));
}

TEST(oci_config, limits_stand_in_it_only_where_the_runtime_sets_them) {
  auto bundle = rootless_bundle();
  for (auto manager : {cgroup_manager::none, cgroup_manager::joined}) {
    bundle.manager = manager;
    EXPECT_EQ(config_of(bundle)["linux"]["resources"], json::object());
  }
  for (auto manager : {cgroup_manager::files, cgroup_manager::systemd}) {
    bundle.manager = manager;
    json limits = {{"memory", {{"limit", 512 << 20}, {"swap", 512 << 20}}},
                   {"pids", {{"limit", 128}}},
                   {"cpu", {{"period", 100'000}, {"quota", 50'000}}}};
    EXPECT_EQ(config_of(bundle)["linux"]["resources"], limits);
  }
  auto spec = full_spec();
  spec.cpus.reset();
  EXPECT_FALSE(config_of(bundle, spec)["linux"]["resources"].contains("cpu"));
}

TEST(oci_config, the_cgroups_path_is_only_given_when_there_is_one) {
  auto bundle = rootless_bundle();
  EXPECT_FALSE(config_of(bundle)["linux"].contains("cgroupsPath"));
  bundle.cgroups_path = "user.slice:bulkhead:1";
  EXPECT_EQ(config_of(bundle)["linux"]["cgroupsPath"], "user.slice:bulkhead:1");
}

TEST(oci_config, kernel_interfaces_are_masked_and_it_says_whose_it_is) {
  auto config = config_of(rootless_bundle());
  for (const auto* path : {"/proc/kcore", "/proc/keys", "/sys/firmware", "/proc/acpi"}) {
    EXPECT_TRUE(has(config["linux"]["maskedPaths"], path)) << path;
  }
  EXPECT_TRUE(has(config["linux"]["readonlyPaths"], "/proc/sys"));
  EXPECT_EQ(config["annotations"][owner_label], "i-42");
  EXPECT_EQ(config["hostname"], "sandbox");
  EXPECT_FALSE(config.contains("hooks"));
}

TEST(ranges_without_account, the_account_is_left_out_and_ranges_stay_apart) {
  using ranges = std::vector<id_range>;
  EXPECT_EQ(ranges_without_account("         0        999          1\n"
                                   "         1     100000      65536\n"),
            (ranges{{0, 1, 65536}}));
  EXPECT_EQ(ranges_without_account("0 999 1\n1 100000 65536\n65537 300000 10\n"),
            (ranges{{0, 1, 65536}, {65536, 65537, 10}}));
  EXPECT_EQ(ranges_without_account("0 100000 65536\n"), (ranges{{0, 1, 65535}}));
  EXPECT_EQ(ranges_without_account("0 999 1\n"), ranges{});
  EXPECT_EQ(ranges_without_account("nonsense"), ranges{});
}

std::string own_profile() {
  for (const auto& file : embedded::image()) {
    if (file.name == "seccomp.json") {
      return std::string{file.content};
    }
  }
  return {};
}

TEST(oci_seccomp, our_profile_is_translated_rule_by_rule) {
  auto from = json::parse(own_profile());
  auto filter = oci_seccomp(own_profile(), "x86_64");
  ASSERT_TRUE(filter) << filter.error().message;
  EXPECT_EQ((*filter)["defaultAction"], from["defaultAction"]);
  EXPECT_EQ((*filter)["defaultErrnoRet"], from["defaultErrnoRet"]);
  EXPECT_EQ((*filter)["architectures"], json{"SCMP_ARCH_X86_64"});
  EXPECT_EQ((*filter)["syscalls"].size(), from["syscalls"].size());
  for (const auto& rule : (*filter)["syscalls"]) {
    EXPECT_FALSE(rule.contains("comment") || rule.contains("includes")) << rule;
  }
}

TEST(oci_seccomp, a_rule_of_another_machine_is_left_out) {
  auto intel = oci_seccomp(own_profile(), "x86_64");
  auto arm = oci_seccomp(own_profile(), "aarch64");
  ASSERT_TRUE(intel && arm);
  EXPECT_EQ((*arm)["architectures"], json{"SCMP_ARCH_AARCH64"});
  EXPECT_EQ((*arm)["syscalls"].size() + 1, (*intel)["syscalls"].size());
}

TEST(oci_seccomp, what_it_cannot_translate_is_an_error) {
  auto refusal = [](const std::string& text, const char* machine = "x86_64") {
    auto filter = oci_seccomp(text, machine);
    EXPECT_FALSE(filter);
    return filter ? std::string{} : filter.error().message;
  };
  auto with = [](const std::string& rule) {
    return R"({"defaultAction": "A", "archMap": [{"architecture": "SCMP_ARCH_X86_64"}],
               "syscalls": [{"names": ["x"], "action": "B")" +
           rule + "}]}";
  };
  EXPECT_TRUE(oci_seccomp(with(""), "x86_64"));
  EXPECT_NE(refusal("{").find("no JSON"), std::string::npos);
  EXPECT_NE(refusal("{}").find("defaultAction"), std::string::npos);
  EXPECT_NE(refusal(own_profile(), "mips").find("mips"), std::string::npos);
  EXPECT_NE(refusal(own_profile(), "s390x").find("s390x"), std::string::npos);
  EXPECT_NE(refusal(with(R"(, "includes": {"caps": ["CAP_X"]})")).find("condition"),
            std::string::npos);
  EXPECT_NE(refusal(with(R"(, "excludes": {"caps": ["CAP_X"]})")).find("excludes"),
            std::string::npos);
  EXPECT_NE(refusal(R"({"defaultAction": "A", "listenerPath": "x"})").find("listenerPath"),
            std::string::npos);
}

TEST(oci_arguments, crun_and_runc_share_their_options) {
  EXPECT_EQ(
      oci_run_arguments("/usr/sbin/runc", cgroup_manager::joined, "/r/oci", "/r", "/r/pid", "id"),
      (words{"/usr/sbin/runc", "--root", "/r/oci", "run", "--detach", "--bundle", "/r",
             "--pid-file", "/r/pid", "id"}));
  auto systemd = oci_run_arguments("/usr/bin/crun", cgroup_manager::systemd, "/r", "/b", "/p", "i");
  EXPECT_EQ(systemd[3], "--systemd-cgroup");
  auto none = oci_run_arguments("/usr/bin/crun", cgroup_manager::none, "/r", "/b", "/p", "i");
  EXPECT_EQ(none[3], "--cgroup-manager=disabled");
  // runc knows no such word, and goes without where it may not make any.
  EXPECT_EQ(oci_run_arguments("runc", cgroup_manager::none, "/r", "/b", "/p", "i")[3], "run");
  EXPECT_EQ(oci_delete_arguments("runc", "/r/oci", "id"),
            (words{"runc", "--root", "/r/oci", "delete", "--force", "id"}));
}

TEST(oci_complaint, is_the_last_message_in_plain_words) {
  EXPECT_EQ(oci_complaint("time=\"2026-01-01T00:00:00Z\" level=warning msg=\"unable\"\n"
                          "time=\"2026-01-01T00:00:00Z\" level=error msg=\"runc run failed: open "
                          "\\\"x\\\": no\"\n"),
            "runc run failed: open \"x\": no");
  EXPECT_EQ(oci_complaint("cgroups in hybrid mode not supported\n"),
            "cgroups in hybrid mode not supported");
  EXPECT_EQ(oci_complaint(""), "it gave no reason");
  EXPECT_EQ(oci_complaint("\x1b[31mred\n"), "[31mred");
  EXPECT_LE(oci_complaint(std::string(5000, 'x')).size(), 410U);
}

} // namespace
} // namespace bulkhead
