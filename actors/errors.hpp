#pragma once

#include <caf/error.hpp>
#include <caf/make_message.hpp>
#include <caf/message.hpp>

#include "protocol/error.hpp"

CAF_ERROR_CODE_ENUM(bulkhead::errc, "bulkhead")

namespace bulkhead {

/// An error of ours as CAF carries it: code and text.
caf::error to_caf(const error& reason);
caf::error to_caf(errc code, std::string message);

/// The inverse; errors of CAF itself become ours: a request's timeout is `errc::timeout`, a
/// receiver that died is `errc::internal`. `what` names the request for such texts, e.g. "create
/// container".
error from_caf(const caf::error& reason, std::string_view what);

} // namespace bulkhead
