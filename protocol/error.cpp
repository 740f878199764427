#include "protocol/error.hpp"

#include <array>
#include <utility>

namespace bulkhead {

namespace {

constexpr std::array<std::pair<errc, std::string_view>, 16> names = {{
    {errc::none, "none"},
    {errc::invalid_argument, "invalid_argument"},
    {errc::malformed, "malformed"},
    {errc::too_large, "too_large"},
    {errc::denied, "denied"},
    {errc::not_found, "not_found"},
    {errc::unavailable, "unavailable"},
    {errc::overloaded, "overloaded"},
    {errc::limit, "limit"},
    {errc::timeout, "timeout"},
    {errc::cancelled, "cancelled"},
    {errc::server_failed, "server_failed"},
    {errc::closed, "closed"},
    {errc::out_of_memory, "out_of_memory"},
    {errc::runtime_lost, "runtime_lost"},
    {errc::internal, "internal"},
}};

} // namespace

std::string_view to_string(errc code) {
  for (const auto& [value, name] : names) {
    if (value == code) {
      return name;
    }
  }
  return "internal";
}

errc errc_from_string(std::string_view name) {
  for (const auto& [value, text] : names) {
    if (text == name) {
      return value;
    }
  }
  return errc::internal;
}

} // namespace bulkhead
