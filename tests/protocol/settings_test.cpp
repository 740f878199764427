#include "protocol/settings.hpp"

#include <map>

#include <gtest/gtest.h>

namespace bulkhead {
namespace {

using variables = std::map<std::string, std::string, std::less<>>;

tl::expected<settings, std::vector<error>> read(variables values,
                                                std::string_view home = "/home/u") {
  return read_settings(
      [&](std::string_view name) -> std::optional<std::string> {
        auto found = values.find(name);
        return found != values.end() ? std::optional(found->second) : std::nullopt;
      },
      home);
}

/// The one error that `values` lead to.
std::string refusal(variables values) {
  auto result = read(std::move(values));
  if (result) {
    return "accepted";
  }
  EXPECT_EQ(result.error().size(), 1U);
  EXPECT_EQ(result.error().front().code, errc::invalid_argument);
  return result.error().front().message;
}

TEST(settings, defaults) {
  auto result = read({});
  ASSERT_TRUE(result);
  EXPECT_EQ(result->state_dir, "/home/u/MCPs");
  EXPECT_EQ(result->servers_config, "");
  EXPECT_EQ(result->runtime, "");
  EXPECT_EQ(result->timeout.count(), 30'000);
  EXPECT_EQ(result->max_timeout.count(), 120'000);
  EXPECT_EQ(result->memory, 512ULL << 20);
  EXPECT_EQ(result->pids, 128U);
  EXPECT_FALSE(result->cpus);
  EXPECT_EQ(result->container_uid, 65534U);
  EXPECT_FALSE(result->allow_rootful);
  EXPECT_FALSE(result->strict);
  EXPECT_FALSE(result->autoload);
  EXPECT_EQ(result->log_as, log_format::text);
}

TEST(settings, takes_every_variable) {
  auto result = read({{"MCP_BRIDGE_RUNTIME", "docker"},
                      {"MCP_BRIDGE_OCI_RUNTIME", "/opt/bin/crun"},
                      {"MCP_BRIDGE_IMAGE", "localhost/mine:2"},
                      {"MCP_BRIDGE_TIMEOUT", "2.5"},
                      {"MCP_BRIDGE_MAX_TIMEOUT", "600"},
                      {"MCP_BRIDGE_MEMORY", "1g"},
                      {"MCP_BRIDGE_PIDS", "64"},
                      {"MCP_BRIDGE_CPUS", "0.5"},
                      {"MCP_BRIDGE_CONTAINER_USER", "1000:1001"},
                      {"MCP_BRIDGE_RUNTIME_IDLE_TIMEOUT", "0"},
                      {"MCP_BRIDGE_STATE_DIR", "/var/lib/x"},
                      {"MCP_SERVERS_CONFIG", "~/servers.json"},
                      {"MCP_BRIDGE_OUTPUT_MODE", "TOON"},
                      {"MCP_BRIDGE_LOG_LEVEL", "warn"},
                      {"MCP_BRIDGE_LOG_FORMAT", "JSON"},
                      {"MCP_BRIDGE_ALLOW_SELF_SERVER", "yes"},
                      {"MCP_BRIDGE_ALLOW_ROOTFUL", "True"},
                      {"MCP_BRIDGE_STRICT", "1"},
                      {"MCP_BRIDGE_AUTOLOAD", "1"},
                      {"MCP_BRIDGE_OUTPUT_SCHEMA", "1"},
                      {"MCP_BRIDGE_SESSIONS", "0"},
                      {"MCP_BRIDGE_SESSION_IDLE", "60"},
                      {"MCP_BRIDGE_CONCURRENT_RUNS", "3"}});
  ASSERT_TRUE(result);
  EXPECT_EQ(result->runtime, "docker");
  EXPECT_EQ(result->sessions, 0U);
  EXPECT_EQ(result->session_idle.count(), 60);
  EXPECT_EQ(result->oci_runtime, "/opt/bin/crun");
  EXPECT_EQ(result->image, "localhost/mine:2");
  EXPECT_EQ(result->timeout.count(), 2500);
  EXPECT_EQ(result->max_timeout.count(), 600'000);
  EXPECT_EQ(result->memory, 1ULL << 30);
  EXPECT_EQ(result->pids, 64U);
  EXPECT_EQ(result->cpus, 0.5);
  EXPECT_EQ(result->container_uid, 1000U);
  EXPECT_EQ(result->container_gid, 1001U);
  EXPECT_EQ(result->runtime_idle_timeout.count(), 0);
  EXPECT_EQ(result->state_dir, "/var/lib/x");
  EXPECT_EQ(result->servers_config, "/home/u/servers.json");
  EXPECT_EQ(result->output, output_mode::toon);
  EXPECT_EQ(result->log, log_level::warning);
  EXPECT_EQ(result->log_as, log_format::json);
  EXPECT_TRUE(result->allow_self_server);
  EXPECT_TRUE(result->allow_rootful);
  EXPECT_TRUE(result->strict);
  EXPECT_TRUE(result->autoload);
  EXPECT_TRUE(result->output_schema);
  EXPECT_EQ(result->concurrent_runs, 3U);
}

TEST(settings, what_runs_leave) {
  auto result = read({});
  ASSERT_TRUE(result);
  EXPECT_EQ(result->spill, 64 * mebibyte);
  EXPECT_EQ(result->artifacts, 256 * mebibyte);
  result = read({{"MCP_BRIDGE_SPILL", "1g"}, {"MCP_BRIDGE_ARTIFACTS", "0"}});
  ASSERT_TRUE(result);
  EXPECT_EQ(result->spill, 1024 * mebibyte);
  EXPECT_EQ(result->artifacts, 0U);
  EXPECT_EQ(
      refusal({{"MCP_BRIDGE_SPILL", "much"}}),
      "MCP_BRIDGE_SPILL=\"much\" can't be used: expected a size, e.g. 64m or 1g, or 0 to keep "
      "no output");
}

TEST(settings, an_empty_variable_is_unset) {
  auto result =
      read({{"MCP_BRIDGE_TIMEOUT", ""}, {"MCP_BRIDGE_CPUS", ""}, {"MCP_BRIDGE_STATE_DIR", ""}});
  ASSERT_TRUE(result);
  EXPECT_EQ(result->timeout.count(), 30'000);
  EXPECT_EQ(result->state_dir, "/home/u/MCPs");
}

TEST(settings, a_driver_is_one_of_two) {
  environment_lookup rest = [](std::string_view name) -> std::optional<std::string> {
    return name == "MCP_BRIDGE_DRIVER" ? std::optional<std::string>{"rest"} : std::nullopt;
  };
  EXPECT_EQ(read_settings(rest, "/home/u")->driver, "rest");
  environment_lookup other = [](std::string_view name) -> std::optional<std::string> {
    return name == "MCP_BRIDGE_DRIVER" ? std::optional<std::string>{"socket"} : std::nullopt;
  };
  auto refused = read_settings(other, "/home/u");
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().front().message.find("cli or rest"), std::string::npos);
}

TEST(settings, an_error_names_variable_value_and_expectation) {
  EXPECT_EQ(refusal({{"MCP_BRIDGE_PIDS", "5"}}),
            "MCP_BRIDGE_PIDS=\"5\" can't be used: expected a whole number from 16 to 32768");
  EXPECT_EQ(refusal({{"MCP_BRIDGE_STRICT", "maybe"}}),
            "MCP_BRIDGE_STRICT=\"maybe\" can't be used: expected 1, 0, true, false, yes or no");
  EXPECT_EQ(refusal({{"MCP_BRIDGE_RUNTIME", "\x1b[31m"}}),
            "MCP_BRIDGE_RUNTIME=\"?[31m\" can't be used: expected podman, docker, oci or an "
            "absolute path");
}

TEST(settings, takes_a_profile_for_an_image) {
  EXPECT_EQ(read({{"MCP_BRIDGE_IMAGE", "data"}})->image, "localhost/bulkhead-sandbox:data");
  EXPECT_EQ(read({{"MCP_BRIDGE_IMAGE", "minimal"}})->image, "localhost/bulkhead-sandbox:latest");
}

TEST(settings, refuses_bad_values) {
  const std::vector<std::pair<std::string, std::string>> bad = {
      {"MCP_BRIDGE_RUNTIME", "nerdctl"},
      {"MCP_BRIDGE_OCI_RUNTIME", "bin/crun"},
      {"MCP_BRIDGE_IMAGE", "--privileged"},
      {"MCP_BRIDGE_IMAGE", "a b"},
      {"MCP_BRIDGE_TIMEOUT", "0"},
      {"MCP_BRIDGE_TIMEOUT", "-3"},
      {"MCP_BRIDGE_TIMEOUT", "nan"},
      {"MCP_BRIDGE_TIMEOUT", "inf"},
      {"MCP_BRIDGE_TIMEOUT", "1e1"},
      {"MCP_BRIDGE_TIMEOUT", "30s"},
      {"MCP_BRIDGE_TIMEOUT", "."},
      {"MCP_BRIDGE_MAX_TIMEOUT", "86401"},
      {"MCP_BRIDGE_MEMORY", "31m"},
      {"MCP_BRIDGE_MEMORY", "2000g"},
      {"MCP_BRIDGE_MEMORY", "lots"},
      {"MCP_BRIDGE_PIDS", "15"},
      {"MCP_BRIDGE_PIDS", "32769"},
      {"MCP_BRIDGE_PIDS", "64.5"},
      {"MCP_BRIDGE_PIDS", " 64"},
      {"MCP_BRIDGE_CPUS", "0.01"},
      {"MCP_BRIDGE_CPUS", "1025"},
      {"MCP_BRIDGE_CONTAINER_USER", "0:0"},
      {"MCP_BRIDGE_CONTAINER_USER", "0:1000"},
      {"MCP_BRIDGE_CONTAINER_USER", "1000:0"},
      {"MCP_BRIDGE_CONTAINER_USER", "1000"},
      {"MCP_BRIDGE_CONTAINER_USER", "root:root"},
      {"MCP_BRIDGE_CONTAINER_USER", "4294967295:1"},
      {"MCP_BRIDGE_CONTAINER_USER", "4294967296:1"},
      {"MCP_BRIDGE_RUNTIME_IDLE_TIMEOUT", "-1"},
      {"MCP_BRIDGE_STATE_DIR", "relative/path"},
      {"MCP_BRIDGE_OUTPUT_MODE", "xml"},
      {"MCP_BRIDGE_LOG_LEVEL", "loud"},
      {"MCP_BRIDGE_LOG_FORMAT", "xml"},
      {"MCP_BRIDGE_ALLOW_SELF_SERVER", "on"},
      {"MCP_BRIDGE_ALLOW_ROOTFUL", "2"},
      {"MCP_BRIDGE_CONCURRENT_RUNS", "0"},
      {"MCP_BRIDGE_SESSIONS", "many"},
      {"MCP_BRIDGE_SESSION_IDLE", "0"},
  };
  for (const auto& [name, value] : bad) {
    auto message = refusal({{name, value}});
    EXPECT_TRUE(message.starts_with(name + "=\"" + value + "\"")) << name << ": " << message;
  }
}

TEST(settings, reports_all_errors_at_once) {
  auto result =
      read({{"MCP_BRIDGE_PIDS", "x"}, {"MCP_BRIDGE_MEMORY", "y"}, {"MCP_BRIDGE_LOG_LEVEL", "z"}});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().size(), 3U);
}

TEST(settings, the_timeout_stays_under_its_maximum) {
  EXPECT_EQ(
      refusal({{"MCP_BRIDGE_TIMEOUT", "300"}}),
      "MCP_BRIDGE_TIMEOUT is 300 s, more than MCP_BRIDGE_MAX_TIMEOUT, 120 s: lower the first or "
      "raise the second");
  auto lowered = read({{"MCP_BRIDGE_MAX_TIMEOUT", "10"}});
  ASSERT_TRUE(lowered);
  EXPECT_EQ(lowered->timeout.count(), 10'000);
  ASSERT_EQ(lowered->remarks.size(), 1U);
  EXPECT_EQ(lowered->remarks[0], "MCP_BRIDGE_MAX_TIMEOUT is 10 s, less than the default "
                                 "MCP_BRIDGE_TIMEOUT of 30 s: runs get 10 s");
  EXPECT_TRUE(read({{"MCP_BRIDGE_MAX_TIMEOUT", "10"}, {"MCP_BRIDGE_TIMEOUT", "10"}}));
}

TEST(settings, an_unknown_home_is_an_error_only_where_it_is_needed) {
  EXPECT_FALSE(read({}, ""));
  auto result = read({{"MCP_BRIDGE_STATE_DIR", "/srv/x"}}, "");
  ASSERT_TRUE(result);
  EXPECT_EQ(result->state_dir, "/srv/x");
}

TEST(settings, a_long_value_is_cut_in_the_error) {
  auto message = refusal({{"MCP_BRIDGE_MEMORY", std::string(10'000, '9')}});
  EXPECT_LT(message.size(), 300U);
}

TEST(settings, unknown_variables_are_named) {
  EXPECT_TRUE(unknown_variables({"PATH", "MCP_SERVERS_CONFIG", "MCP_BRIDGE_PIDS"}).empty());
  EXPECT_EQ(unknown_variables({"MCP_BRIDGE_TIMEOUTS", "MCP_BRIDGE_COLOUR",
                               "MCP_BRIDGE_SERVERS_CONFIG", "MCP_BRIDGE_"}),
            (std::vector<std::string>{
                "nothing reads the variable MCP_BRIDGE_TIMEOUTS; did you mean MCP_BRIDGE_TIMEOUT?",
                "nothing reads the variable MCP_BRIDGE_COLOUR",
                "nothing reads the variable MCP_BRIDGE_SERVERS_CONFIG; did you mean "
                "MCP_SERVERS_CONFIG?",
                "nothing reads the variable MCP_BRIDGE_"}));
}

TEST(parse_size, binary_multiples) {
  EXPECT_EQ(parse_size("1048576").value(), 1048576U);
  EXPECT_EQ(parse_size("7b").value(), 7U);
  EXPECT_EQ(parse_size("64k").value(), 65536U);
  EXPECT_EQ(parse_size("512m").value(), 512ULL << 20);
  EXPECT_EQ(parse_size("512M").value(), 512ULL << 20);
  EXPECT_EQ(parse_size("512MB").value(), 512ULL << 20);
  EXPECT_EQ(parse_size("512MiB").value(), 512ULL << 20);
  EXPECT_EQ(parse_size("1g").value(), 1ULL << 30);
  EXPECT_EQ(parse_size("1.5g").value(), 3ULL << 29);
  EXPECT_EQ(parse_size("2t").value(), 2ULL << 40);
}

TEST(parse_size, refuses_the_rest) {
  for (auto text :
       {"", "m", "-1m", "+1m", "1e3", "512 m", "512x", "512ib", "1.2.3m", "0x10", "512mm",
        "9007199254740993", "99999999999999999999", "9999999t", "inf", "nan"}) {
    auto result = parse_size(text);
    ASSERT_FALSE(result) << text;
    EXPECT_EQ(result.error().code, errc::invalid_argument);
    EXPECT_NE(result.error().message.find(text), std::string::npos);
  }
}

} // namespace
} // namespace bulkhead
