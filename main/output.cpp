#include "main/output.hpp"

#include <unistd.h>

#include <cerrno>

namespace bulkhead {

void write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    auto count = ::write(fd, text.data(), text.size());
    if (count < 0 && errno == EINTR) {
      continue;
    }
    if (count <= 0) {
      return;
    }
    text.remove_prefix(static_cast<std::size_t>(count));
  }
}

} // namespace bulkhead
