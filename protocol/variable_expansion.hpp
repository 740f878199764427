#pragma once

#include <string>
#include <string_view>

#include "protocol/error.hpp"
#include "protocol/settings.hpp"

namespace bulkhead {

/// May a variable of the environment be called that in a configuration?
bool is_variable_name(std::string_view name);

/// Replaces `${VAR}`, `${VAR:-default}` and `${VAR-default}` (also written `${env:VAR}`) by
/// variables' values; as in a shell, the default after `:-` also stands in for an empty value, the
/// one after `-` doesn't. `$${` stands for a literal `${`, with its `}` also in a default; values
/// aren't expanded again. Errors, which never show a value: not_found for an unset variable without
/// default, invalid_argument for anything else in `${…}`.
expected<std::string> expand_variables(std::string_view text,
                                       const environment_lookup& environment);

/// `~` or `~/rest` at the start becomes the folder `home`; other texts stay as they are.
std::string expand_home(std::string_view path, std::string_view home);

} // namespace bulkhead
