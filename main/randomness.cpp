#include "main/randomness.hpp"

#include <sys/random.h>

#include <cerrno>
#include <cstdlib>
#include <iterator>

#include <fmt/format.h>

namespace bulkhead {

std::string random_bytes(std::size_t count) {
  std::string bytes(count, '\0');
  for (std::size_t had = 0; had < count;) {
    auto got = ::getrandom(bytes.data() + had, count - had, 0);
    if (got < 0 && errno != EINTR) {
      std::abort();
    }
    had += got < 0 ? 0 : static_cast<std::size_t>(got);
  }
  return bytes;
}

std::string random_hex(std::size_t bytes) {
  std::string text;
  for (unsigned char byte : random_bytes(bytes)) {
    fmt::format_to(std::back_inserter(text), "{:02x}", byte);
  }
  return text;
}

} // namespace bulkhead
