#include "main/output.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "protocol/printable.hpp"

namespace bulkhead {

int write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    auto count = ::write(fd, text.data(), text.size());
    if (count < 0 && errno == EINTR) {
      continue;
    }
    if (count <= 0) {
      return count < 0 ? errno : EIO;
    }
    text.remove_prefix(static_cast<std::size_t>(count));
  }
  return 0;
}

int write_answer(int out, std::string_view text, int status) {
  int failure = write_all(out, text);
  if (failure == 0) {
    return status;
  }
  complain(fmt::format("write to standard output: {}", std::strerror(failure)));
  return status == 0 ? 1 : status;
}

void complain(std::string_view message) {
  write_all(STDERR_FILENO, fmt::format("bulkhead: {}\n", printable(message)));
}

} // namespace bulkhead
