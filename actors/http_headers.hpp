#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "actors/messages.hpp"

namespace bulkhead {

/// The first header of that name; empty if there is none.
std::string first_header(const std::vector<http_header>& headers, std::string_view name);

/// All headers of that name as one (RFC 9110, 5.3): a server may ask for several kinds of login.
std::string joined_headers(const std::vector<http_header>& headers, std::string_view name);

} // namespace bulkhead
