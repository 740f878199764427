#include "actors/errors.hpp"

#include <caf/all.hpp>
#include <fmt/format.h>

namespace bulkhead {

caf::error to_caf(errc code, std::string message) {
  return caf::make_error(code, std::move(message));
}

caf::error to_caf(const error& reason) {
  return to_caf(reason.code, reason.message);
}

error from_caf(const caf::error& reason, std::string_view what) {
  if (reason.category() == caf::atom("bulkhead")) {
    auto code = static_cast<errc>(reason.code());
    const auto& context = reason.context();
    if (!context.empty() && context.match_element<std::string>(0)) {
      return {code, context.get_as<std::string>(0)};
    }
    return {code, fmt::format("{}: {}", what, to_string(code))};
  }
  if (reason == caf::sec::request_timeout) {
    return {errc::timeout, fmt::format("{}: no answer before the deadline", what)};
  }
  return {errc::internal, fmt::format("{}: {}", what, caf::to_string(reason))};
}

} // namespace bulkhead
