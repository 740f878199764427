#include "protocol/tenant_config.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "protocol/setting_values.hpp"

namespace bulkhead {
namespace {

using namespace std::chrono_literals;
using texts = std::vector<std::string>;

const std::string hash_a(64, 'a');
const std::string hash_b(64, 'b');

tl::expected<serve_config, std::vector<error>> read(std::string_view text,
                                                    const settings& process = {}) {
  return read_serve_config(text, "/etc/bulkhead/bulkhead.toml", process);
}

/// The messages that `text` leads to, a line each.
std::string refusals(std::string_view text) {
  auto result = read(text);
  if (result) {
    return "accepted";
  }
  std::string all;
  for (const auto& each : result.error()) {
    all += (all.empty() ? "" : "\n") + each.message;
  }
  return all;
}

/// What it says of the one thing that is wrong, without the file's name.
std::string refusal(std::string_view text) {
  auto all = refusals(text);
  EXPECT_EQ(std::count(all.begin(), all.end(), '\n'), 0) << all;
  constexpr std::string_view file = "/etc/bulkhead/bulkhead.toml:";
  EXPECT_TRUE(all.starts_with(file)) << all;
  return all.substr(std::min(file.size(), all.size()));
}

TEST(tenant_config, an_empty_file_has_defaults) {
  settings process;
  process.concurrent_runs = 5;
  auto config = read("", process);
  ASSERT_TRUE(config);
  EXPECT_EQ(config->listen, (listen_address{"127.0.0.1", 8765}));
  EXPECT_EQ(config->concurrent_runs, 5U);
  EXPECT_EQ(config->queue, 64U);
  EXPECT_FALSE(config->tls);
  EXPECT_TRUE(has_ui(*config));
  EXPECT_TRUE(config->tenants.empty());
  EXPECT_TRUE(config->remarks.empty());
  EXPECT_EQ(accepted_hosts(*config), (texts{"127.0.0.1", "[::1]", "localhost"}));
}

const auto whole = fmt::format(R"(# All of it.
listen = "[::]:443"
hosts = ["MCP.example.org", "[2001:db8::1]"]
concurrent_runs = 12

[tls]
certificate = "tls/cert.pem"
key = "/etc/ssl/private/key.pem"

[connections]
most = 100
per_address = 10
count_loopback = true

[admission]
queue = 100

[ui]
enabled = true

[tenants.team-a]
tokens = [
  {{ id = "laptop", sha256 = "{}", expires = 2027-01-01 }},
  {{ id = "ci", sha256 = "{}", expires = 2027-01-01T08:00:00+02:00 }},
]
servers = ["files", "git*"]
tools = ["files/read_*"]
image = "data"

[tenants.team-a.limits]
concurrent_runs = 3
sessions = 2
memory = "256m"
cpus = 1.5
pids = 64
timeout = 2.5
max_timeout = 60
tool_calls = 500
output = "8m"
artifacts = 1048576
requests_per_second = 5
burst = 10
cpu_seconds_per_day = 3600

[tenants.b]
)",
                               hash_a, std::string(64, 'B'));

TEST(tenant_config, all_of_it) {
  settings process;
  process.sessions = 7;
  process.image = "localhost/mine:1";
  auto config = read(whole, process);
  ASSERT_TRUE(config) << refusals(whole);
  EXPECT_EQ(config->listen, (listen_address{"::", 443}));
  EXPECT_EQ(config->hosts, (texts{"mcp.example.org", "[2001:db8::1]"}));
  EXPECT_EQ(config->concurrent_runs, 12U);
  EXPECT_EQ(config->tls->certificate, "/etc/bulkhead/tls/cert.pem");
  EXPECT_EQ(config->tls->key, "/etc/ssl/private/key.pem");
  EXPECT_EQ(config->connections, (connection_limits{100, 10, true}));
  EXPECT_EQ(config->queue, 100U);
  EXPECT_TRUE(has_ui(*config));
  ASSERT_EQ(config->tenants.size(), 2U);
  const auto* one = config->find("team-a");
  ASSERT_NE(one, nullptr);
  ASSERT_EQ(one->tokens.size(), 2U);
  EXPECT_EQ(one->tokens[0],
            (tenant_token{"laptop", hash_a, std::chrono::sys_seconds{1798761600s}}));
  EXPECT_EQ(one->tokens[1].sha256, hash_b) << "in lower case";
  EXPECT_EQ(one->tokens[1].expires, std::chrono::sys_seconds{1798783200s}) << "06:00 UTC";
  EXPECT_EQ(one->servers, (texts{"files", "git*"}));
  EXPECT_EQ(one->tools, texts{"files/read_*"});
  EXPECT_EQ(one->image, "localhost/bulkhead-sandbox:data");
  tenant_limits limits{
      3, 2, 256 * mebibyte, 1.5, 64, 2500ms, 60s, 500, 8 * mebibyte, mebibyte, 5, 10, 3600};
  EXPECT_EQ(one->limits, limits);
  const auto* other = config->find("b");
  ASSERT_NE(other, nullptr);
  EXPECT_TRUE(other->tokens.empty());
  EXPECT_FALSE(other->servers);
  EXPECT_EQ(other->image, "localhost/mine:1");
  EXPECT_EQ(other->limits.sessions, 7U);
  EXPECT_EQ(other->limits.concurrent_runs, 12U) << "as many as the process";
  EXPECT_EQ(config->find("c"), nullptr);
}

TEST(tenant_config, every_wrong_value_is_told_with_its_place) {
  auto limit = [](std::string_view line) {
    return refusal(fmt::format("[tenants.ali.limits]\n{}", line));
  };
  EXPECT_EQ(limit("memory = \"5x\""),
            "2: tenants.ali.limits.memory = \"5x\" can't be used: expected a size from 32m to 1t, "
            "e.g. 512m or 1g");
  EXPECT_EQ(limit("pids = 4"),
            "2: tenants.ali.limits.pids = 4 can't be used: expected a whole number "
            "from 16 to 32768");
  for (const auto* line :
       {"memory = 1024", "cpus = -1", "cpus = inf", "timeout = 0", "timeout = 1e9",
        "sessions = 257", "concurrent_runs = 0", "tool_calls = -1", "tool_calls = 1.5",
        "output = \"much\"", "artifacts = -5", "requests_per_second = 0", "burst = 0",
        "cpu_seconds_per_day = 0", "memory = true", "memory = []", "pids = {}",
        "timeout = 2027-01-01"}) {
    EXPECT_TRUE(limit(line).starts_with("2: tenants.ali.limits.")) << line << ": " << limit(line);
    EXPECT_NE(limit(line).find("expected "), std::string::npos) << line << ": " << limit(line);
  }
  EXPECT_EQ(
      limit("timeout = 60\nmax_timeout = 30"),
      "2: tenants.ali.limits.timeout is 60 s, more than max_timeout, 30 s: lower the first or "
      "raise the second");
}

TEST(tenant_config, values_of_the_process) {
  for (const auto* line :
       {"listen = \"8765\"", "listen = \"example.org:80\"", "listen = \"::1:80\"", "listen = 8765",
        "listen = \"127.0.0.1:70000\"", "listen = \"[::1]\""}) {
    EXPECT_TRUE(refusal(line).starts_with("1: listen = ")) << line;
  }
  for (const auto* line :
       {"hosts = \"a\"", "hosts = [1]", "hosts = [\"https://a\"]", "hosts = [\"a:80\"]",
        "hosts = [\"*\"]", "hosts = [\"\"]", "hosts = [\"[a]\"]"}) {
    EXPECT_TRUE(refusal(line).starts_with("1: hosts")) << line << ": " << refusal(line);
  }
  EXPECT_EQ(refusal("[tls]\ncertificate = \"a.pem\""),
            "1: tls.certificate and tls.key belong together: name both files");
  EXPECT_TRUE(refusal("[connections]\nmost = 0").starts_with("2: connections.most = 0"));
  EXPECT_TRUE(refusal("[admission]\nqueue = 0").starts_with("2: admission.queue = 0"));
  EXPECT_TRUE(refusal("[ui]\nenabled = \"maybe\"").starts_with("2: ui.enabled = \"maybe\""));
  EXPECT_TRUE(refusal("ui = true").starts_with("1: ui must be a table: write [ui]"));
  EXPECT_TRUE(refusal("concurrent_runs = 5000").starts_with("1: concurrent_runs = 5000"));
}

TEST(tenant_config, unknown_keys_are_errors) {
  EXPECT_EQ(refusal("\n[tenants.ali.limits]\nmemry = \"1g\""),
            "3: nothing reads the key tenants.ali.limits.memry; did you mean \"memory\"?");
  EXPECT_EQ(refusal("[tenant.ali]"), "1: nothing reads the key tenant; did you mean \"tenants\"?");
  EXPECT_EQ(refusal("[tls]\nkey = \"k\"\ncertificate = \"c\"\nzzzzzzzzz = 1"),
            "4: nothing reads the key tls.zzzzzzzzz; expected certificate, key");
  EXPECT_EQ(refusal("[tenants.ali]\ntoken = \"bh_secret\""),
            "2: nothing reads the key tenants.ali.token; did you mean \"tokens\"?");
}

TEST(tenant_config, all_that_is_wrong_is_found_at_once) {
  auto all = refusals("listen = 1\nhost = []\n[tenants.ali]\nimage = \"-x\"\n[tenants.Bob]\n");
  EXPECT_EQ(std::count(all.begin(), all.end(), '\n'), 3) << all;
}

TEST(tenant_config, names_of_tenants) {
  for (const auto* name : {"a", "team-a", "0", "a1", "abcdefghijklmnopqrstuvwxyz012345"}) {
    EXPECT_TRUE(is_tenant_name(name)) << name;
  }
  for (const auto* name : {"", ".", "..", "-a", "A", "a/b", "a.b", "a_b", "ä", "a b", "a\n",
                           "abcdefghijklmnopqrstuvwxyz0123456"}) {
    EXPECT_FALSE(is_tenant_name(name)) << name;
  }
  EXPECT_TRUE(refusal("[tenants.\"../x\"]").starts_with("1: \"../x\" can't be a tenant's name"));
  EXPECT_TRUE(refusal("tenants = { a = 1 }").starts_with("1: tenants.a must be a table"));
  EXPECT_TRUE(refusal("[tenants.a]\n[tenants.b]\n[tenants.a]")
                  .starts_with("3: this key or table is "
                               "there twice"));
}

TEST(tenant_config, a_token_that_is_not_one_is_not_shown) {
  auto token = [](std::string_view text) {
    return refusal(fmt::format("[tenants.ali]\ntokens = [\n{}]", text));
  };
  EXPECT_EQ(
      token("{ id = \"x\", sha256 = \"bh_verysecret\" }"),
      "3: tenants.ali.tokens.sha256 of a token isn't one: expected the SHA-256 of a token, 64 "
      "hexadecimal digits, as `bulkhead token new` writes it");
  auto hash = fmt::format("sha256 = \"{}\"", hash_a);
  for (const auto& text :
       {std::string{"{ id = \"x\", sha256 = 5 }"}, std::string{"{ id = \"x\" }"},
        "{ " + hash + " }", "{ id = \"a b\", " + hash + " }", "{ id = 5, " + hash + " }",
        "{ id = \"\", " + hash + " }", "{ id = \"x\", " + hash + ", expires = \"2027-01-01\" }",
        "{ id = \"x\", " + hash + ", expires = 08:00:00 }",
        "{ id = \"x\", " + hash + ", expire = 2027-01-01 }", std::string{"\"bh_verysecret\""}}) {
    EXPECT_TRUE(token(text).starts_with("3: ")) << text << ": " << token(text);
    EXPECT_EQ(token(text).find("secret"), std::string::npos) << token(text);
  }
  EXPECT_EQ(refusals("[tenants.ali]\ntokens = \"bh_verysecret").find("secret"), std::string::npos);
}

TEST(tenant_config, twins) {
  auto of = [](std::string_view id, const std::string& hash) {
    return fmt::format("{{ id = \"{}\", sha256 = \"{}\" }}", id, hash);
  };
  EXPECT_EQ(
      refusal(fmt::format("[tenants.ali]\ntokens = [{},\n{}]", of("x", hash_a), of("x", hash_b))),
      "3: tenants.ali has two tokens \"x\"; give one another id");
  auto twice = refusal(fmt::format("[tenants.ali]\ntokens = [{}]\n[tenants.bob]\ntokens = [{}]",
                                   of("x", hash_a), of("y", hash_a)));
  EXPECT_TRUE(
      twice.starts_with("4: the sha256 of token \"y\" of tenants.bob is also another one's"))
      << twice;
  EXPECT_EQ(refusals(fmt::format("[tenants.ali]\ntokens = [{}]\n[tenants.bob]\ntokens = [{}]",
                                 of("x", hash_a), of("x", hash_b))),
            "accepted");
}

TEST(tenant_config, patterns) {
  EXPECT_EQ(refusal("[tenants.ali]\nservers = [\"files/read\"]"),
            "2: tenants.ali.servers: \"files/read\" names a tool: it belongs into \"tools\", and a "
            "server's name here");
  EXPECT_EQ(refusal("[tenants.ali]\ntools = [\"read_*\"]"),
            "2: tenants.ali.tools: \"read_*\" names no tool: expected SERVER/TOOL, e.g. "
            "\"files/read_*\"");
  EXPECT_TRUE(refusal("[tenants.ali]\nservers = \"files\"").starts_with("2: tenants.ali.servers"));
  EXPECT_TRUE(refusal("[tenants.ali]\nservers = [\"\"]").starts_with("2: tenants.ali.servers"));
}

TEST(tenant_config, what_a_tenant_may_use_is_narrowed) {
  auto config = read("[tenants.ali]\nservers = [\"files\", \"git\"]\ntools = [\"files/read_*\", "
                     "\"web/*\"]\n[tenants.ali.limits]\ntool_calls = 5\n[tenants.bob]\n"
                     "[tenants.eve]\nservers = []");
  ASSERT_TRUE(config);
  policy rules;
  rules.deny = {"files/read_secret"};
  auto everything = rules;
  add_rules(*config->find("bob"), everything);
  EXPECT_EQ(everything, rules) << "nothing is said of bob";
  add_rules(*config->find("ali"), rules);
  EXPECT_TRUE(allows_tool_name(rules, "files", "read_file").allowed);
  EXPECT_FALSE(allows_tool_name(rules, "files", "read_secret").allowed)
      << "the policy still counts";
  EXPECT_FALSE(allows_tool_name(rules, "files", "write_file").allowed) << "not in tools";
  EXPECT_FALSE(allows_server(rules, "web").allowed) << "not in servers";
  EXPECT_FALSE(allows_server(rules, "git").allowed) << "none of its tools";
  EXPECT_EQ(allows_server(rules, "web").rule, "not in the allow list of tenant \"ali\" (servers)");
  ASSERT_EQ(rules.calls_per_run.size(), 1U);
  EXPECT_EQ(rules.calls_per_run[0].most, 5U);
  EXPECT_EQ(rules.calls_per_run[0].file, "tenant \"ali\" (limits.tool_calls)");
  policy nothing;
  add_rules(*config->find("eve"), nothing);
  EXPECT_FALSE(allows_server(nothing, "files").allowed);
}

TEST(tenant_config, settings_of_a_tenant) {
  settings process;
  process.state_dir = "/home/u/MCPs";
  process.strict = true;
  auto config = read(whole, process);
  ASSERT_TRUE(config);
  auto own = settings_for(process, *config->find("team-a"));
  EXPECT_EQ(own.state_dir, "/home/u/MCPs/tenants/team-a");
  EXPECT_EQ(own.image, "localhost/bulkhead-sandbox:data");
  EXPECT_EQ(own.concurrent_runs, 3U);
  EXPECT_EQ(own.sessions, 2U);
  EXPECT_EQ(own.memory, 256 * mebibyte);
  EXPECT_EQ(own.cpus, 1.5);
  EXPECT_EQ(own.pids, 64U);
  EXPECT_EQ(own.timeout, 2500ms);
  EXPECT_EQ(own.max_timeout, 60s);
  EXPECT_EQ(own.spill, 8 * mebibyte);
  EXPECT_EQ(own.artifacts, mebibyte);
  EXPECT_TRUE(own.strict);
}

TEST(tenant_config, what_the_process_allows_bounds_a_default) {
  settings process;
  process.max_timeout = 10s;
  process.timeout = 10s;
  auto config = read("[tenants.ali.limits]\ntimeout = 60\n[tenants.bob.limits]\nmax_timeout = 5\n"
                     "concurrent_runs = 9",
                     process);
  ASSERT_TRUE(config);
  EXPECT_EQ(config->find("ali")->limits.timeout, 10s);
  EXPECT_EQ(config->find("bob")->limits.timeout, 5s);
  EXPECT_EQ(config->remarks.size(), 5U) << fmt::format("{}", fmt::join(config->remarks, "\n"));
}

TEST(tenant_config, a_tenant_whom_nothing_lets_in_is_remarked) {
  constexpr std::string_view oauth = "[oauth]\nresource = \"https://m.example/mcp\"\n"
                                     "[[oauth.issuers]]\nissuer = \"https://l.example/\"\n";
  auto remarks = [&](std::string text) {
    auto config = read("[tenants.ali]\n[tenants.bob]\n" + text);
    EXPECT_TRUE(config);
    return config ? config->remarks : texts{};
  };
  auto of = [](const std::string& name) {
    return fmt::format("tenants.{0}: it has no tokens, so nobody can use it; make one with: "
                       "bulkhead token new {0}",
                       name);
  };
  EXPECT_EQ(remarks(""), (texts{of("ali"), of("bob")}));
  EXPECT_EQ(remarks(std::string{oauth} + "tenant = \"bob\"\n"), texts{of("ali")});
  EXPECT_EQ(remarks(std::string{oauth} + "tenant_claim = \"team\"\n"), texts{});
}

TEST(tenant_config, beyond_loopback) {
  auto open = read("listen = \"0.0.0.0:80\"");
  ASSERT_TRUE(open);
  EXPECT_EQ(open->remarks.size(), 2U) << "no TLS, no hosts";
  EXPECT_FALSE(has_ui(*open));
  auto one = read("listen = \"192.0.2.1:80\"\nhosts = [\"a.example\"]\n[tls]\nkey = \"k\"\n"
                  "certificate = \"c\"");
  ASSERT_TRUE(one);
  EXPECT_TRUE(one->remarks.empty());
  EXPECT_EQ(accepted_hosts(*one), (texts{"192.0.2.1", "a.example"}));
  EXPECT_EQ(parse_listen("LocalHost:1")->host, "127.0.0.1");
  EXPECT_TRUE(is_loopback({"127.0.0.2", 1}));
  EXPECT_FALSE(is_loopback({"::", 1}));
  EXPECT_EQ(accepted_hosts(*read("listen = \"[2001:db8::1]:80\"")), texts{"[2001:db8::1]"});
}

TEST(tenant_config, what_a_change_needs) {
  auto before = read(whole);
  ASSERT_TRUE(before);
  EXPECT_TRUE(compare(*before, *before).none());
  auto after = *before;
  after.listen.port = 444;
  after.connections.most = 1;
  after.tls->key = "/other";
  after.concurrent_runs = 1;
  after.queue = 1;
  after.hosts.clear();
  after.ui.reset();
  after.tenants[0].name = "c";
  after.tenants[1].tokens.pop_back();
  after.tenants[1].limits.pids = 17;
  std::swap(after.tenants[0], after.tenants[1]);
  auto change = compare(*before, after);
  EXPECT_EQ(change.restart, (texts{"listen", "connections", "hosts"}));
  EXPECT_EQ(change.at_once, (texts{"tls", "concurrent_runs", "admission.queue", "ui.enabled"}));
  EXPECT_EQ(change.added, texts{"c"});
  EXPECT_EQ(change.removed, texts{"b"});
  ASSERT_EQ(change.changed.size(), 1U);
  EXPECT_EQ(change.changed[0].name, "team-a");
  EXPECT_TRUE(change.changed[0].tokens);
  EXPECT_TRUE(change.changed[0].limits);
  EXPECT_FALSE(change.changed[0].rights);
  EXPECT_FALSE(change.changed[0].image);
  after = *before;
  after.tls.reset();
  EXPECT_EQ(compare(*before, after).restart, texts{"tls"});
}

TEST(tenant_config, files_that_are_none) {
  EXPECT_EQ(refusal("a = \n"), "1: this is no valid TOML (column 5)");
  // The library asserts of these what it refuses.
  // And it says it never comes to where a character such as U+00E9 leads it.
  for (auto text : {"[/a]\n", "[[/a]]\n", "[tenants./a]\n", "a = {/b = 1}\n", "[\"a\n",
                    "\xc3\xa9 = 1\n", "a = 1 \xc9\x9f\n", "\xef\xac\xa6\n"}) {
    EXPECT_TRUE(refusal(text).starts_with("1: this is no valid TOML")) << text;
  }
  auto large = read(std::string(largest_serve_config + 1, '#'));
  ASSERT_FALSE(large);
  EXPECT_EQ(large.error().front().code, errc::too_large);
}

} // namespace
} // namespace bulkhead
