#include "protocol/container_spec.hpp"

#include <algorithm>

#include <gtest/gtest.h>

namespace bulkhead {
namespace {

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
  spec.cid_file = "/run/x/cid";
  spec.max_lifetime = 900;
  spec.mounts = {{"/run/x/ipc", "/ipc", true}, {"/home/u/MCPs/user_tools", "/projects", false}};
  spec.command = {"python3", "-I", "-S", "/ipc/entrypoint.py"};
  return spec;
}

engine_profile podman(bool rootless) {
  engine_profile engine;
  engine.oci_runtime = "runc";
  engine.rootless = rootless;
  return engine;
}

engine_profile docker() {
  engine_profile engine;
  engine.engine = container_engine::docker;
  engine.binary = "docker";
  engine.rootless = false;
  return engine;
}

/// Are `wanted` neighbours somewhere in `argv` before the image?
bool has(const words& argv, const words& wanted) {
  auto end = std::find(argv.begin(), argv.end(), "--");
  return std::search(argv.begin(), end, wanted.begin(), wanted.end()) != end;
}

const words guest_environment = {
    "--env", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "--env", "HOME=/workspace",
    "--env", "LANG=C.UTF-8",
    "--env", "TMPDIR=/tmp",
    "--env", "MPLCONFIGDIR=/tmp/matplotlib",
    "--env", "PYTHONDONTWRITEBYTECODE=1",
    "--env", "PYTHONNOUSERSITE=1"};

const words image_and_command = {
    "--", "localhost/bulkhead-sandbox:latest", "python3", "-I", "-S", "/ipc/entrypoint.py"};

words joined(std::initializer_list<words> parts) {
  words result;
  for (const auto& part : parts) {
    result.insert(result.end(), part.begin(), part.end());
  }
  return result;
}

// clang-format off
const words podman_start = {
    "podman", "--runtime", "runc", "run", "-i", "--rm", "--pull=never",
    "--name", "bulkhead-0123", "--label", "org.bulkhead.instance=i-42", "--cidfile", "/run/x/cid",
    "--log-driver", "none", "--hostname", "sandbox",
    "--network", "none", "--ipc", "private", "--cgroupns", "private",
    "--pid", "private", "--uts", "private", "--no-hosts"};
const words privileges = {
    "--user", "65534:65534", "--cap-drop", "all", "--security-opt", "no-new-privileges",
    "--security-opt", "seccomp=/run/x/seccomp.json"};
const words limits = {
    "--memory", "536870912b", "--memory-swap", "536870912b", "--pids-limit", "128", "--cpus", "0.5"};
const words ulimits = {
    "--ulimit", "nofile=1024:1024", "--ulimit", "nproc=4096:4096",
    "--ulimit", "fsize=134217728:134217728", "--ulimit", "core=0:0", "--oom-score-adj", "1000"};
const words podman_end = {
    "--timeout", "900",
    "--read-only", "--read-only-tmpfs=false", "--image-volume", "ignore", "--shm-size", "67108864b",
    "--tmpfs", "/tmp:rw,noexec,nosuid,nodev,size=67108864,mode=1777,notmpcopyup",
    "--tmpfs", "/workspace:rw,noexec,nosuid,nodev,size=134217728,mode=1777,notmpcopyup",
    "--mount", "type=bind,source=/run/x/ipc,target=/ipc,readonly,nosuid,nodev,noexec",
    "--mount", "type=bind,source=/home/u/MCPs/user_tools,target=/projects,nosuid,nodev,noexec",
    "--workdir", "/workspace", "--init", "--no-healthcheck", "--entrypoint", "",
    "--systemd", "false", "--sdnotify", "ignore", "--detach-keys", "", "--unsetenv-all",
    "--http-proxy=false", "--env-host=false"};
const words docker_all = {
    "docker", "run", "-i", "--rm", "--pull=never",
    "--name", "bulkhead-0123", "--label", "org.bulkhead.instance=i-42", "--cidfile", "/run/x/cid",
    "--log-driver", "none", "--hostname", "sandbox",
    "--network", "none", "--ipc", "private", "--cgroupns", "private",
    "--user", "65534:65534", "--cap-drop", "all", "--security-opt", "no-new-privileges",
    "--security-opt", "seccomp=/run/x/seccomp.json",
    "--memory", "536870912b", "--memory-swap", "536870912b", "--pids-limit", "128", "--cpus", "0.5",
    "--ulimit", "nofile=1024:1024", "--ulimit", "nproc=4096:4096",
    "--ulimit", "fsize=134217728:134217728", "--ulimit", "core=0:0", "--oom-score-adj", "1000",
    "--read-only", "--shm-size", "67108864b",
    "--tmpfs", "/tmp:rw,noexec,nosuid,nodev,size=67108864,mode=1777",
    "--tmpfs", "/workspace:rw,noexec,nosuid,nodev,size=134217728,mode=1777",
    "--mount", "type=bind,source=/run/x/ipc,target=/ipc,readonly",
    "--mount", "type=bind,source=/home/u/MCPs/user_tools,target=/projects",
    "--workdir", "/workspace", "--init", "--no-healthcheck", "--entrypoint", "",
    "--env", "HTTP_PROXY=", "--env", "HTTPS_PROXY=", "--env", "FTP_PROXY=", "--env", "NO_PROXY=",
    "--env", "ALL_PROXY=", "--env", "http_proxy=", "--env", "https_proxy=", "--env", "ftp_proxy=",
    "--env", "no_proxy=", "--env", "all_proxy="};
// clang-format on

TEST(run_arguments, podman_rootless) {
  EXPECT_EQ(run_arguments(podman(true), full_spec()), joined({podman_start,
                                                              {"--userns=nomap"},
                                                              privileges,
                                                              limits,
                                                              ulimits,
                                                              podman_end,
                                                              guest_environment,
                                                              image_and_command}));
}

TEST(run_arguments, podman_rootless_without_engine_limits) {
  auto engine = podman(true);
  engine.limit_flags = false;
  EXPECT_EQ(run_arguments(engine, full_spec()), joined({podman_start,
                                                        {"--userns=nomap"},
                                                        privileges,
                                                        ulimits,
                                                        podman_end,
                                                        guest_environment,
                                                        image_and_command}));
}

TEST(run_arguments, podman_rootful) {
  EXPECT_EQ(run_arguments(podman(false), full_spec()),
            joined({podman_start, privileges, limits, ulimits, podman_end, guest_environment,
                    image_and_command}));
}

TEST(run_arguments, docker) {
  EXPECT_EQ(run_arguments(docker(), full_spec()),
            joined({docker_all, guest_environment, image_and_command}));
}

TEST(run_arguments, docker_takes_its_runtime_after_run) {
  auto engine = docker();
  engine.oci_runtime = "runsc";
  EXPECT_TRUE(has(run_arguments(engine, full_spec()), {"--pull=never", "--runtime", "runsc"}));
}

TEST(run_arguments, a_remote_podman_lacks_two_flags) {
  auto engine = podman(true);
  engine.remote = true;
  auto argv = run_arguments(engine, full_spec());
  EXPECT_FALSE(has(argv, {"--env-host=false"}));
  EXPECT_FALSE(has(argv, {"--http-proxy=false"}));
  EXPECT_TRUE(has(argv, {"--env", "HTTPS_PROXY="}));
  EXPECT_TRUE(has(argv, {"--env", "https_proxy="}));
}

/// What holds for every container, whatever the spec leaves out.
TEST(run_arguments, every_constraint_is_there) {
  container_spec bare;
  bare.name = "n";
  bare.instance = "i";
  bare.image = "x";
  bare.memory = 64ULL << 20;
  bare.pids = 16;
  bare.seccomp_profile = "/s.json";
  bare.command = {"python3"};
  const std::vector<words> constraints = {
      {"--rm"},
      {"--pull=never"},
      {"--network", "none"},
      {"--ipc", "private"},
      {"--read-only"},
      {"--cap-drop", "all"},
      {"--security-opt", "no-new-privileges"},
      {"--security-opt", "seccomp=/s.json"},
      {"--user", "65534:65534"},
      {"--memory", "67108864b", "--memory-swap", "67108864b"},
      {"--pids-limit", "16"},
      {"--ulimit", "nofile=1024:1024"},
      {"--ulimit", "nproc=4096:4096"},
      {"--ulimit", "fsize=134217728:134217728"},
      {"--ulimit", "core=0:0"},
      {"--oom-score-adj", "1000"},
      {"--log-driver", "none"},
      {"--workdir", "/workspace"},
      {"--init"},
      {"--entrypoint", ""},
      {"--label", "org.bulkhead.instance=i"},
      {"--name", "n"},
  };
  for (const auto& engine : {podman(true), podman(false), docker()}) {
    auto argv = run_arguments(engine, bare);
    for (const auto& constraint : constraints) {
      EXPECT_TRUE(has(argv, constraint))
          << engine.binary << " lacks " << constraint.front() << ' ' << constraint.back();
    }
    for (const char* target : {"/tmp:", "/workspace:"}) {
      auto mount = std::find_if(argv.begin(), argv.end(),
                                [&](const std::string& word) { return word.starts_with(target); });
      ASSERT_NE(mount, argv.end());
      for (const char* option : {",noexec", ",nosuid", ",nodev", ",size="}) {
        EXPECT_NE(mount->find(option), std::string::npos) << *mount;
      }
    }
    EXPECT_FALSE(has(argv, {"--privileged"}));
    EXPECT_FALSE(has(argv, {"--cpus"}));
    EXPECT_FALSE(has(argv, {"--cidfile"}));
    EXPECT_FALSE(has(argv, {"--timeout"}));
    EXPECT_EQ(std::count(argv.begin(), argv.end(), "--mount"), 0);
  }
  for (bool rootless : {true, false}) {
    auto argv = run_arguments(podman(rootless), bare);
    EXPECT_TRUE(has(argv, {"--read-only-tmpfs=false"}));
    EXPECT_TRUE(has(argv, {"--image-volume", "ignore"}));
    EXPECT_TRUE(has(argv, {"--http-proxy=false"}));
    EXPECT_TRUE(has(argv, {"--no-hosts"}));
    EXPECT_TRUE(has(argv, {"--sdnotify", "ignore"}));
  }
}

TEST(run_arguments, no_flag_of_one_engine_reaches_the_other) {
  auto argv = run_arguments(docker(), full_spec());
  for (const char* flag :
       {"--read-only-tmpfs=false", "--image-volume", "--no-hosts", "--timeout", "--systemd",
        "--sdnotify", "--unsetenv-all", "--userns=nomap", "--pid"}) {
    EXPECT_EQ(std::count(argv.begin(), argv.end(), flag), 0) << flag;
  }
}

TEST(run_arguments, odd_paths_are_quoted) {
  auto spec = full_spec();
  auto encoded = [&](const std::string& source, const std::string& target) {
    spec.mounts = {{source, target, true}};
    auto argv = run_arguments(docker(), spec);
    return *(std::find(argv.begin(), argv.end(), "--mount") + 1);
  };
  EXPECT_EQ(encoded("/a,b:c", "/x"), R"(type=bind,"source=/a,b:c",target=/x,readonly)");
  EXPECT_EQ(encoded("/a:b", "/x"), "type=bind,source=/a:b,target=/x,readonly");
  EXPECT_EQ(encoded("/a b=c", "/x"), "type=bind,source=/a b=c,target=/x,readonly");
  EXPECT_EQ(encoded("/a\"b", "/x"), R"(type=bind,"source=/a""b",target=/x,readonly)");
  EXPECT_EQ(encoded("/a\\b", "/x,y"), R"(type=bind,source=/a\b,"target=/x,y",readonly)");
}

TEST(run_arguments, other_users_and_sizes) {
  auto spec = full_spec();
  spec.uid = 1000;
  spec.gid = 1001;
  spec.workspace_size = 1ULL << 30;
  spec.cpus = 2;
  auto engine = podman(true);
  engine.nofile = 512;
  engine.nproc = 256;
  auto argv = run_arguments(engine, spec);
  EXPECT_TRUE(has(argv, {"--user", "1000:1001"}));
  EXPECT_TRUE(has(argv, {"--ulimit", "fsize=1073741824:1073741824"}));
  EXPECT_TRUE(has(argv, {"--ulimit", "nofile=512:512", "--ulimit", "nproc=256:256"}));
  EXPECT_TRUE(has(argv, {"--cpus", "2"}));
}

TEST(check_container_spec, accepts_what_is_sound) {
  EXPECT_TRUE(check_container_spec(full_spec()));
  auto spec = full_spec();
  spec.mounts = {{"/a,b:c \"d\"", "/etc/hosts", true}, {"/x", "/tmpfiles", true}};
  EXPECT_TRUE(check_container_spec(spec));
}

TEST(check_container_spec, refuses_what_would_weaken_the_sandbox) {
  auto refused = [](auto change) {
    auto spec = full_spec();
    change(spec);
    auto result = check_container_spec(spec);
    return !result && result.error().code == errc::invalid_argument;
  };
  EXPECT_TRUE(refused([](auto& s) { s.name = "--privileged"; }));
  EXPECT_TRUE(refused([](auto& s) { s.name = ""; }));
  EXPECT_TRUE(refused([](auto& s) { s.instance = "a b"; }));
  EXPECT_TRUE(refused([](auto& s) { s.image = "-v/:/host"; }));
  EXPECT_TRUE(refused([](auto& s) { s.image = ""; }));
  EXPECT_TRUE(refused([](auto& s) { s.uid = 0; }));
  EXPECT_TRUE(refused([](auto& s) { s.gid = 0; }));
  EXPECT_TRUE(refused([](auto& s) { s.memory = 0; }));
  EXPECT_TRUE(refused([](auto& s) { s.pids = 0; }));
  EXPECT_TRUE(refused([](auto& s) { s.tmp_size = 0; }));
  EXPECT_TRUE(refused([](auto& s) { s.workspace_size = 0; }));
  EXPECT_TRUE(refused([](auto& s) { s.cpus = 0; }));
  EXPECT_TRUE(refused([](auto& s) { s.seccomp_profile = ""; }));
  EXPECT_TRUE(refused([](auto& s) { s.seccomp_profile = "unconfined"; }));
  EXPECT_TRUE(refused([](auto& s) { s.cid_file = "relative"; }));
  EXPECT_TRUE(refused([](auto& s) { s.command.clear(); }));
  EXPECT_TRUE(refused([](auto& s) { s.mounts[0].source = "relative"; }));
  EXPECT_TRUE(refused([](auto& s) { s.mounts[0].source = "/a\nb"; }));
  EXPECT_TRUE(refused([](auto& s) { s.mounts[0].source = ""; }));
  EXPECT_TRUE(refused([](auto& s) { s.mounts[1].target = "/ipc"; }));
  for (const char* target : {"/", "", "ipc", "/tmp", "/tmp/x", "/workspace", "/proc/self", "/sys",
                             "/dev/shm", "/run", "/a/../proc", "/a/./b", "//a", "/a/", "/a\tb"}) {
    EXPECT_TRUE(refused([&](auto& s) { s.mounts[0].target = target; })) << target;
  }
}

TEST(remove_arguments, without_grace_time) {
  EXPECT_EQ(remove_arguments(podman(true), "n"),
            (words{"podman", "rm", "-f", "-v", "-t", "0", "--ignore", "n"}));
  EXPECT_EQ(remove_arguments(docker(), "n"), (words{"docker", "rm", "-f", "-v", "n"}));
}

TEST(list_arguments, name_and_instance) {
  EXPECT_EQ(list_arguments(podman(true)),
            (words{"podman", "ps", "-a", "--no-trunc", "--filter", "label=org.bulkhead.instance",
                   "--format", R"({{.Names}} {{index .Labels "org.bulkhead.instance"}})"}));
  EXPECT_EQ(list_arguments(docker()),
            (words{"docker", "ps", "-a", "--no-trunc", "--filter", "label=org.bulkhead.instance",
                   "--format", R"({{.Names}} {{.Label "org.bulkhead.instance"}})"}));
}

} // namespace
} // namespace bulkhead
