#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "protocol/error.hpp"

namespace bulkhead {

/// A JSON object from an OAuth server, scanned and bounded. `what` names it in errors. Errors:
/// malformed, too_large.
expected<nlohmann::json> read_oauth_document(std::string_view json, std::string_view what);

/// A member that is a string of at most 8192 bytes without control characters; else empty.
std::string text_member(const nlohmann::json& document, const char* key);

/// The strings of a member that is an array, at most 64 of them; else empty.
std::vector<std::string> text_members(const nlohmann::json& document, const char* key);

/// A member that is true.
bool true_member(const nlohmann::json& document, const char* key);

} // namespace bulkhead
