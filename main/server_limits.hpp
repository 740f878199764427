#pragma once

#include <string>

#include "protocol/error.hpp"

namespace bulkhead {

/// Lets the process open more files than shells' commands may: each connection takes one, and each
/// sandbox a few.
void raise_descriptors();

/// The error of a listener that couldn't be opened, with where its address is told, e.g. by
/// "listen" in the file `where`.
tl::unexpected<error> fail_to_listen(const error& why, const std::string& key,
                                     const std::string& where);

} // namespace bulkhead
