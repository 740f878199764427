#include "protocol/oauth_resource_reader.hpp"

#include <algorithm>

#include <fmt/ranges.h>

#include "protocol/oauth_challenge.hpp"
#include "protocol/oauth_metadata.hpp"
#include "protocol/tenant_config.hpp"
#include "protocol/web_url.hpp"

namespace bulkhead {

namespace {

using texts = std::optional<std::vector<std::string>>;

constexpr std::string_view path = "oauth";
constexpr std::string_view issuers_path = "oauth.issuers";

/// A URL as it stands there: issuers and audiences are compared byte by byte.
value_kind<std::string> url_value(std::string_view example) {
  return {
      fmt::format("an https URL without user, query and fragment (http for this machine's own), "
                  "e.g. \"{}\"",
                  example),
      [](std::string_view text) -> std::optional<std::string> {
        auto url = read_secure_url(text, "it", true);
        bool plain = text.find_first_of("?#\"\\") == std::string_view::npos;
        return url && plain ? std::optional(std::string{text}) : std::nullopt;
      }};
}

value_kind<std::string> text_value(std::string_view expectation) {
  return {std::string{expectation}, [](std::string_view text) -> std::optional<std::string> {
            bool control = std::any_of(text.begin(), text.end(), [](char c) {
              return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
            });
            bool sound = !text.empty() && text.size() <= 1024 && !control;
            return sound ? std::optional(std::string{text}) : std::nullopt;
          }};
}

value_kind<std::string> tenant_value() {
  return {"the name of a tenant", [](std::string_view text) -> std::optional<std::string> {
            return is_tenant_name(text) ? std::optional(std::string{text}) : std::nullopt;
          }};
}

value_kind<bool> flag_value() {
  return {"true or false", [](std::string_view text) -> std::optional<bool> {
            return text == "true" || text == "false" ? std::optional(text == "true") : std::nullopt;
          }};
}

std::string fault_of_scope(std::string_view scope) {
  bool one = read_scopes(scope) == std::vector<std::string>{std::string{scope}};
  return one ? std::string{} : "is no scope: visible characters without spaces and quotes";
}

std::string fault_of_algorithm(std::string_view algorithm) {
  const auto& known = known_algorithms();
  bool one = std::find(known.begin(), known.end(), algorithm) != known.end();
  return one ? std::string{} : fmt::format("can't be used: expected {}", fmt::join(known, ", "));
}

oauth_issuer read_issuer(const toml::table& table, const std::string& resource,
                         toml_findings& findings) {
  oauth_issuer result;
  toml_fields from{table, std::string{issuers_path}, findings};
  auto refuse = [&](std::string_view why) { findings.refuse(table.source(), why); };
  if (!from.take("issuer", result.issuer, url_value("https://login.example.org/")) &&
      !table.contains("issuer")) {
    refuse("an entry of oauth.issuers has no \"issuer\", the URL that its tokens name as iss");
  }
  from.take("jwks_uri", result.jwks_uri, url_value("https://login.example.org/keys"));
  result.audience = resource;
  from.take("audience", result.audience, text_value("what tokens for this server name as aud"));
  texts algorithms;
  from.take_texts("algorithms", "a list of algorithms", algorithms, fault_of_algorithm);
  result.algorithms = algorithms.value_or(known_algorithms());
  if (const auto* list = table["algorithms"].as_array(); list != nullptr && list->empty()) {
    from.refuse("algorithms", *list, " is empty: no token could be believed");
  }
  bool fixed = from.take("tenant", result.tenant, tenant_value());
  bool claimed = from.take("tenant_claim", result.tenant_claim,
                           text_value("the name of a claim, e.g. \"team\""));
  from.take("private_network", result.private_network, flag_value());
  from.finish();
  if (fixed == claimed && table.contains("tenant") == table.contains("tenant_claim")) {
    refuse("an entry of oauth.issuers must say whose its tokens are: either \"tenant\", or "
           "\"tenant_claim\", the claim that names the tenant");
  }
  return result;
}

} // namespace

oauth_resource read_oauth_resource(const toml::table& table, toml_findings& findings) {
  oauth_resource result;
  toml_fields from{table, std::string{path}, findings};
  if (!from.take("resource", result.resource, url_value("https://mcp.example.org/mcp")) &&
      !table.contains("resource")) {
    findings.refuse(table.source(), "oauth.resource is missing: the URL that clients know this "
                                    "server by, e.g. \"https://mcp.example.org/mcp\"");
  }
  texts scopes;
  from.take_texts("scopes", "a list of scopes", scopes, fault_of_scope);
  result.scopes = scopes.value_or(std::vector<std::string>{});
  from.take_list("issuers",
                 "a list: write [[oauth.issuers]] on a line, and an issuer's keys below it",
                 [&](const toml::node& member) {
                   const auto* entry = member.as_table();
                   if (entry == nullptr) {
                     findings.refuse(member.source(), "oauth.issuers has what is no table");
                     return;
                   }
                   auto issuer = read_issuer(*entry, result.resource, findings);
                   if (!issuer.issuer.empty() && result.find(issuer.issuer) != nullptr) {
                     findings.refuse(entry->source(),
                                     fmt::format("there are two entries for the issuer \"{}\"",
                                                 shown_value(issuer.issuer)));
                   }
                   result.issuers.push_back(std::move(issuer));
                 });
  from.finish();
  if (result.issuers.empty()) {
    findings.refuse(table.source(),
                    "oauth names no issuer: add [[oauth.issuers]], or remove [oauth]");
  }
  return result;
}

} // namespace bulkhead
