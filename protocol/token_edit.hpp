#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "protocol/tenant_config.hpp"

namespace bulkhead {

/// How `bulkhead token` changes a tenant's tokens. What isn't touched keeps its text, comments and
/// all: edits are made in the text, and a changed text counts only if it reads as exactly what was
/// meant. Where no such edit is found (the file is laid out in a way that nobody foresaw), the
/// error is `unavailable`, and the file has to be edited by hand.

/// The text of `file` with one more token, the last of its tenant. Errors: those of
/// read_serve_config (the first of them); not_found (no such tenant), invalid_argument (the tenant
/// has a token of that id or hash); unavailable.
expected<std::string> add_token(std::string_view text, const std::string& file,
                                std::string_view tenant, const tenant_token& token);

/// Without one. Errors: the same; not_found for a token, too.
expected<std::string> remove_token(std::string_view text, const std::string& file,
                                   std::string_view tenant, std::string_view id);

/// With another hash and expiry for one; the expiry stays when none is given. Errors: the same.
expected<std::string> change_token(std::string_view text, const std::string& file,
                                   std::string_view tenant, const tenant_token& token);

/// With a tenant more, without tokens, at the end. Errors: those of read_serve_config;
/// invalid_argument (it is there, or its name can't be used); unavailable.
expected<std::string> add_tenant(std::string_view text, const std::string& file,
                                 std::string_view tenant);

/// What to write into the file by hand for a token: two lines.
std::string token_lines(std::string_view tenant, const tenant_token& token);

} // namespace bulkhead
