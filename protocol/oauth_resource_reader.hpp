#pragma once

#include "protocol/oauth_resource.hpp"
#include "protocol/toml_fields.hpp"

namespace bulkhead {

/// Reads the table `[oauth]` of bulkhead.toml: `resource`, `scopes`, and in `[[oauth.issuers]]`
/// `issuer`, `jwks_uri`, `audience` (by default the resource), `algorithms` (by default all that
/// are known), `tenant` or `tenant_claim`, `private_network`.
oauth_resource read_oauth_resource(const toml::table& table, toml_findings& findings);

} // namespace bulkhead
