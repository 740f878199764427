#include "protocol/tenant_config.hpp"

#include <algorithm>

#include "protocol/token_edit.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace bulkhead::fuzz {

namespace {

const std::string file = "/etc/bulkhead/bulkhead.toml";

tl::expected<serve_config, std::vector<error>> read(std::string_view text) {
  return read_serve_config(text, file, settings{});
}

void check_errors(const std::vector<error>& errors) {
  require(!errors.empty(), "what is refused is refused for something");
  for (const auto& each : errors) {
    require_message(each.message);
    require(is_utf8(each.message), "an error is told in UTF-8");
  }
}

void check_tenant(const serve_config& config, const tenant& one) {
  require(is_tenant_name(one.name) && config.find(one.name) == &one, "a tenant has its name");
  for (const auto& token : one.tokens) {
    require(is_token_id(token.id) && token.sha256.size() == 64 &&
                token.sha256.find_first_not_of("0123456789abcdef") == std::string::npos,
            "a token is a hash");
    require(std::count_if(one.tokens.begin(), one.tokens.end(),
                          [&](const auto& each) { return each.id == token.id; }) == 1,
            "a token's id is its own");
  }
  settings process;
  process.state_dir = "/var/lib/bulkhead";
  auto own = settings_for(process, one);
  require(own.state_dir == "/var/lib/bulkhead/tenants/" + one.name, "a tenant has its folder");
  require(own.timeout <= own.max_timeout && own.memory > 0 && own.pids > 0,
          "a tenant's runs have limits");
  require(one.limits.requests_per_second > 0 && one.limits.burst > 0, "a tenant may ask");
  policy rules;
  rules.deny.emplace_back("forbidden");
  add_rules(one, rules);
  require(!allows_server(rules, "forbidden").allowed, "a tenant's rules only narrow");
}

void check_config(const serve_config& config) {
  require(compare(config, config).none(), "nothing has changed");
  require(!accepted_hosts(config).empty(), "the server has a name");
  require(is_loopback(config.listen) || !config.listen.host.empty(), "there is an address");
  for (const auto& one : config.tenants) {
    check_tenant(config, one);
  }
  require(std::is_sorted(config.tenants.begin(), config.tenants.end(),
                         [](const auto& a, const auto& b) { return a.name < b.name; }),
          "tenants are sorted");
  for (const auto& remark : config.remarks) {
    require(!remark.empty() && is_utf8(remark), "a remark is told in UTF-8");
  }
}

/// Edits change what they are to change and nothing else, or are refused.
void check_edits(std::string_view text, const serve_config& config) {
  const tenant_token fresh{"fuzz-1", std::string(64, '7'), {}};
  const tenant_token other{"fuzz-1", std::string(64, '8'), {}};
  for (const auto& one : config.tenants) {
    auto added = add_token(text, file, one.name, fresh);
    if (!added) {
      require_message(added.error().message);
      continue;
    }
    auto after = read(*added);
    require(after && after->find(one.name)->tokens.size() == one.tokens.size() + 1,
            "a token is added");
    auto changed = change_token(*added, file, one.name, other);
    require(!changed || read(*changed)->find(one.name)->tokens.back() == other,
            "a token is changed");
    auto removed = remove_token(*added, file, one.name, fresh.id);
    require(!removed || read(*removed) == config, "what was added and removed is as before");
  }
  if (auto more = add_tenant(text, file, "fuzz-tenant")) {
    auto after = read(*more);
    require(after && after->tenants.size() == config.tenants.size() + 1, "a tenant is added");
  }
}

} // namespace

void tenant_config_target(std::string_view input) {
  auto config = read(input);
  if (!config) {
    check_errors(config.error());
    return;
  }
  check_config(*config);
  check_edits(input, *config);
}

} // namespace bulkhead::fuzz
