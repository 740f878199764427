#pragma once

#include <cstddef>
#include <string>

namespace bulkhead {

/// So many random bytes from the kernel; ends the process should it have none.
std::string random_bytes(std::size_t count);

/// The same in hex, two characters a byte.
std::string random_hex(std::size_t bytes);

} // namespace bulkhead
