#pragma once

/// toml++ as it is used here. It asserts, or with clang assumes, of some texts what it then checks
/// and refuses in words anyway, e.g. that a key doesn't start with a slash. Files that people write
/// must not end the program, in whichever way it is built, so its assertions are left out.
#pragma push_macro("NDEBUG")
#undef NDEBUG
#define TOML_ASSERT(condition) static_assert(true)
#define TOML_HEADER_ONLY 1
#include <toml++/toml.h>
#pragma pop_macro("NDEBUG")
