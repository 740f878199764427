#pragma once

#include <string>
#include <vector>

namespace bulkhead {

/// A command's arguments with what is likely a secret replaced by `***`, to be shown: values whose
/// name (`--api-key=…`, `--token …`, `PASSWORD=…`, `Authorization: …`, `?key=…`) speaks of a key,
/// token, secret, password, credential or authorization; passwords in URLs; defaults of such
/// variables (`${TOKEN:-…}`, `${TOKEN-…}`); and texts of the forms that well-known services give
/// their tokens.
std::vector<std::string> mask_arguments(const std::vector<std::string>& arguments);

} // namespace bulkhead
