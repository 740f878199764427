#include "actors/http_headers.hpp"

#include <algorithm>

#include "protocol/http_messages.hpp"

namespace bulkhead {

std::string first_header(const std::vector<http_header>& headers, std::string_view name) {
  auto found = std::find_if(headers.begin(), headers.end(),
                            [&](const auto& each) { return same_name(each.name, name); });
  return found != headers.end() ? found->value : std::string{};
}

std::string joined_headers(const std::vector<http_header>& headers, std::string_view name) {
  std::string result;
  for (const auto& each : headers) {
    if (same_name(each.name, name)) {
      result += (result.empty() ? "" : ", ") + each.value;
    }
  }
  return result;
}

} // namespace bulkhead
