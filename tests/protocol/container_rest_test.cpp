#include "protocol/container_rest.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace bulkhead {
namespace {

using nlohmann::json;

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
  spec.mounts = {{"/run/x/ipc", "/ipc", true}, {"/home/u/MCPs/user tools", "/projects", false}};
  spec.command = {"python3", "-I", "-S", "/ipc/entrypoint.py"};
  return spec;
}

json body_of(const engine_profile& engine = {}, const container_spec& spec = full_spec()) {
  return json::parse(create_body(engine, spec));
}

TEST(container_rest, a_body_names_program_image_and_owner) {
  auto body = body_of();
  EXPECT_EQ(body["name"], "bulkhead-0123");
  EXPECT_EQ(body["image"], "localhost/bulkhead-sandbox:latest");
  EXPECT_EQ(body["pull_policy"], "never");
  EXPECT_EQ(body["entrypoint"], json::array());
  EXPECT_EQ(body["command"], json({"python3", "-I", "-S", "/ipc/entrypoint.py"}));
  EXPECT_EQ(body["labels"], json({{"org.bulkhead.instance", "i-42"}}));
  EXPECT_EQ(body["annotations"], json({{"io.podman.annotations.cid-file", "/run/x/cid"}}));
  EXPECT_EQ(body["stdin"], true);
  EXPECT_EQ(body["terminal"], false);
}

TEST(container_rest, a_body_isolates_whatever_is_configured) {
  for (bool rootless : {true, false}) {
    engine_profile engine;
    engine.rootless = rootless;
    auto body = body_of(engine);
    EXPECT_EQ(body["netns"]["nsmode"], "none");
    for (const char* name : {"ipcns", "pidns", "utsns", "cgroupns"}) {
      EXPECT_EQ(body[name]["nsmode"], "private") << name;
    }
    EXPECT_EQ(body.contains("userns"), rootless);
    EXPECT_EQ(body["user"], "65534:65534");
    EXPECT_EQ(body["cap_drop"], json({"all"}));
    EXPECT_EQ(body["no_new_privileges"], true);
    EXPECT_EQ(body["seccomp_profile_path"], "/run/x/seccomp.json");
    EXPECT_EQ(body["read_only_filesystem"], true);
    EXPECT_EQ(body["image_volume_mode"], "ignore");
    EXPECT_EQ(body["init"], true);
    EXPECT_EQ(body["systemd"], "false");
    EXPECT_EQ(body["unsetenvall"], true);
    EXPECT_EQ(body["httpproxy"], false);
    EXPECT_EQ(body["env_host"], false);
    EXPECT_FALSE(body.value("privileged", false));
  }
  EXPECT_EQ(body_of()["userns"]["nsmode"], "no-map");
}

TEST(container_rest, the_environment_is_the_one_of_the_command_line) {
  auto body = body_of();
  ASSERT_EQ(body["env"].size(), sandbox_environment.size());
  for (auto variable : sandbox_environment) {
    auto sign = variable.find('=');
    EXPECT_EQ(body["env"][std::string{variable.substr(0, sign)}], variable.substr(sign + 1));
  }
}

TEST(container_rest, limits_are_the_engines_where_it_enforces_them) {
  engine_profile engine;
  auto limits = body_of(engine)["resource_limits"];
  EXPECT_EQ(limits["memory"], json({{"limit", 512 << 20}, {"swap", 512 << 20}}));
  EXPECT_EQ(limits["pids"], json({{"limit", 128}}));
  EXPECT_EQ(limits["cpu"], json({{"quota", 50'000}, {"period", 100'000}}));
  engine.limit_flags = false;
  EXPECT_FALSE(body_of(engine).contains("resource_limits"));
}

TEST(container_rest, limits_of_processes_are_always_set) {
  engine_profile engine;
  engine.nofile = 512;
  engine.limit_flags = false;
  auto body = body_of(engine);
  json expected = json::array({{{"type", "nofile"}, {"soft", 512}, {"hard", 512}},
                               {{"type", "nproc"}, {"soft", 4096}, {"hard", 4096}},
                               {{"type", "fsize"}, {"soft", 128 << 20}, {"hard", 128 << 20}},
                               {{"type", "core"}, {"soft", 0}, {"hard", 0}}});
  EXPECT_EQ(body["r_limits"], expected);
  EXPECT_EQ(body["oom_score_adj"], 1000);
}

TEST(container_rest, folders_are_scratch_or_mounted_with_their_flags) {
  auto mounts = body_of()["mounts"];
  ASSERT_EQ(mounts.size(), 4u);
  EXPECT_EQ(mounts[0]["destination"], "/tmp");
  EXPECT_EQ(mounts[0]["options"],
            json({"rw", "noexec", "nosuid", "nodev", "size=67108864", "mode=1777", "notmpcopyup"}));
  EXPECT_EQ(mounts[1]["destination"], "/workspace");
  EXPECT_EQ(mounts[2], json({{"type", "bind"},
                             {"source", "/run/x/ipc"},
                             {"destination", "/ipc"},
                             {"options", {"ro", "rbind", "nosuid", "nodev", "noexec"}}}));
  EXPECT_EQ(mounts[3]["source"], "/home/u/MCPs/user tools");
  EXPECT_EQ(mounts[3]["options"][0], "rw");
}

TEST(container_rest, an_oci_runtime_and_a_lifetime_are_told_when_there_are_any) {
  EXPECT_FALSE(body_of().contains("oci_runtime"));
  EXPECT_FALSE(body_of().contains("timeout"));
  engine_profile engine;
  engine.oci_runtime = "crun";
  auto spec = full_spec();
  spec.max_lifetime = 900;
  auto body = body_of(engine, spec);
  EXPECT_EQ(body["oci_runtime"], "crun");
  EXPECT_EQ(body["timeout"], 900);
}

TEST(container_rest, targets_have_the_services_version) {
  auto targets = rest_targets::at_version("4.3.1");
  ASSERT_TRUE(targets);
  EXPECT_EQ(targets->create(), "/v4.3.1/libpod/containers/create");
  EXPECT_EQ(targets->init("x"), "/v4.3.1/libpod/containers/x/init");
  EXPECT_EQ(targets->start("x"), "/v4.3.1/libpod/containers/x/start");
  EXPECT_EQ(targets->state("x"), "/v4.3.1/libpod/containers/x/json");
  EXPECT_EQ(targets->remove("x"), "/v4.3.1/libpod/containers/x?force=true&v=true&timeout=0");
  EXPECT_NE(targets->attach("x").find("detachKeys="), std::string::npos);
  for (const char* bad : {"", "4.3\r\nX: y", "4/../..", "v4", "1234567890.1234567890"}) {
    EXPECT_FALSE(rest_targets::at_version(bad)) << bad;
  }
}

TEST(container_rest, an_id_is_64_hex_digits) {
  auto id = std::string(64, 'a');
  EXPECT_EQ(read_created_id(json{{"Id", id}, {"Warnings", json::array()}}.dump()).value(), id);
  for (const auto& bad : {std::string{}, std::string{"[]"}, std::string{R"({"Id": 3})"},
                          json{{"Id", "../" + id.substr(3)}}.dump(), std::string{"{"}}) {
    EXPECT_FALSE(read_created_id(bad)) << bad;
  }
}

TEST(container_rest, a_state_is_read) {
  auto state = read_rest_state(
      R"({"Id": "x", "State": {"Status": "exited", "ExitCode": 3, "OOMKilled": true, "Pid": 0}})");
  ASSERT_TRUE(state);
  EXPECT_EQ(*state, (rest_state{"exited", 3, true, 0}));
  EXPECT_TRUE(state->ended());
  auto running = read_rest_state(R"({"State": {"Status": "running", "Pid": 77}})");
  ASSERT_TRUE(running);
  EXPECT_FALSE(running->ended());
  EXPECT_EQ(running->pid, 77);
  for (const char* bad : {"", "[]", "{}", R"({"State": []})", R"({"State": {"Status": 1}})"}) {
    EXPECT_FALSE(read_rest_state(bad)) << bad;
  }
}

TEST(container_rest, a_refusal_tells_why_on_one_line) {
  EXPECT_EQ(rest_complaint(500, "{\"cause\": \"c\", \"message\": \"no\\n such \\u001b[1m thing\"}"),
            "no such [1m thing");
  EXPECT_EQ(rest_complaint(404, "<html>"), "it answered 404 and gave no reason");
  EXPECT_LT(rest_complaint(500, json{{"message", std::string(5000, 'x')}}.dump()).size(), 410u);
}

/// What a demultiplexer makes of bytes that arrive in pieces of `size`.
struct taken {
  std::string out;
  std::string err;
  bool good = true;
};

taken demultiplex(const std::string& bytes, std::size_t size) {
  taken result;
  stream_demultiplexer streams;
  for (std::size_t at = 0; at < bytes.size() && result.good; at += size) {
    auto fed = streams.feed(std::string_view{bytes}.substr(at, size),
                            [&](stream_id stream, std::string_view chunk) {
                              (stream == stream_id::out ? result.out : result.err) += chunk;
                            });
    result.good = fed.has_value();
  }
  return result;
}

std::string chunk(char stream, const std::string& text) {
  auto size = text.size();
  std::string header = {stream, 0, 0, 0};
  for (int shift : {24, 16, 8, 0}) {
    header += static_cast<char>(size >> shift & 0xff);
  }
  return header + text;
}

TEST(container_rest, streams_are_told_apart_however_they_arrive) {
  std::string large(70'000, 'z');
  auto bytes = chunk(1, "one\n") + chunk(2, "two\n") + chunk(1, "") + chunk(1, large);
  for (std::size_t size : {1u, 3u, 8u, 9u, 4096u, 100'000u}) {
    auto result = demultiplex(bytes, size);
    EXPECT_TRUE(result.good);
    EXPECT_EQ(result.out, "one\n" + large) << size;
    EXPECT_EQ(result.err, "two\n") << size;
  }
}

TEST(container_rest, what_is_no_header_is_refused_and_nothing_of_it_is_taken) {
  for (const auto& bad : {chunk(0, "x"), chunk(3, "x"), std::string{"\1\0\1\0\0\0\0\1x", 9}}) {
    auto result = demultiplex(chunk(1, "good") + bad, 4096);
    EXPECT_FALSE(result.good);
    EXPECT_EQ(result.out + result.err, "good");
  }
}

} // namespace
} // namespace bulkhead
