#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "protocol/error.hpp"

/// The headers of Streamable HTTP since 2026-07-28 that repeat what a request's body says.
namespace bulkhead::upstream {

/// A text as a header's value: as it is where it is plain ASCII, else as `=?base64?…?=`
/// (2026-07-28, "Value Encoding").
std::string encode_header_value(std::string_view text);

/// A tool's argument that goes into the header `Mcp-Param-NAME`.
struct param_header {
  std::vector<std::string> path; ///< of object members in the arguments
  std::string name;
  friend bool operator==(const param_header&, const param_header&) = default;
};

/// The annotations `x-mcp-header` of a tool's input schema. Errors: malformed for a schema with an
/// annotation that isn't allowed, by which the tool can't be used; the text says which.
expected<std::vector<param_header>> read_param_headers(const nlohmann::json& schema);

/// Headers for a call with these arguments, a scanned JSON object: names with `Mcp-Param-`, values
/// encoded. Arguments that are absent, null, or of a kind that no header can hold have none.
std::vector<std::pair<std::string, std::string>>
encode_param_headers(const std::vector<param_header>& wanted, std::string_view arguments);

/// What a page of `tools/list` says of headers.
struct page_headers {
  std::map<std::string, std::vector<param_header>> tools; ///< by raw name; those that have any
  std::vector<std::string> refused; ///< what is wrong with tools that can't be used
  std::string result;               ///< the result without those tools; empty: as it was
};

/// Reads a scanned `tools/list` result. One without annotations costs a text search.
page_headers read_page_headers(std::string_view result);

} // namespace bulkhead::upstream
