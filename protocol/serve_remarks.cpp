#include "protocol/serve_remarks.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace bulkhead {

namespace {

void remark_on_listening(serve_config& config, const std::string& file) {
  if (config.operators && !is_loopback(*config.operators)) {
    config.remarks.push_back(
        fmt::format("{}: operator.listen is {}: whoever reaches it sees the figures of all tenants "
                    "without a token",
                    file, config.operators->host));
  }
  if (!is_loopback(config.listen) && !config.tls) {
    config.remarks.push_back(fmt::format(
        "{}: listening on {} without TLS: tokens can be read on the way unless a proxy before it "
        "speaks TLS; name a certificate and key in [tls]",
        file, config.listen.host));
  }
  if (!is_loopback(config.listen) && config.hosts.empty()) {
    config.remarks.push_back(
        fmt::format("{}: \"hosts\" is empty, so requests under a name of this machine are refused; "
                    "e.g. hosts = [\"mcp.example.org\"]",
                    file));
  }
}

void remark_on_runs(serve_config& config) {
  for (const auto& one : config.tenants) {
    if (one.limits.concurrent_runs > config.concurrent_runs) {
      config.remarks.push_back(
          fmt::format("tenants.{}: {} concurrent runs are allowed, but the process has only {}",
                      one.name, one.limits.concurrent_runs, config.concurrent_runs));
    }
  }
}

/// Whoever has an access token may be any tenant where a claim names it.
void remark_on_tenants(serve_config& config) {
  for (const auto& one : config.tenants) {
    auto lets_in = [&](const oauth_issuer& issuer) {
      return issuer.tenant.empty() || issuer.tenant == one.name;
    };
    if (one.tokens.empty() &&
        (!config.oauth ||
         std::none_of(config.oauth->issuers.begin(), config.oauth->issuers.end(), lets_in))) {
      config.remarks.push_back(
          fmt::format("tenants.{0}: it has no tokens, so nobody can use it; make one with: "
                      "bulkhead token new {0}",
                      one.name));
    }
  }
}

} // namespace

void add_remarks(serve_config& config, const std::string& file) {
  remark_on_listening(config, file);
  remark_on_runs(config);
  remark_on_tenants(config);
}

} // namespace bulkhead
