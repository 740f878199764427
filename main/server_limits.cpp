#include "main/server_limits.hpp"

#include <sys/resource.h>

#include <algorithm>

#include <fmt/format.h>

namespace bulkhead {

void raise_descriptors() {
  constexpr rlim_t enough = 8192;
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < enough) {
    limit.rlim_cur = std::min(limit.rlim_max, enough);
    ::setrlimit(RLIMIT_NOFILE, &limit);
  }
}

tl::unexpected<error> fail_to_listen(const error& why, const std::string& key,
                                     const std::string& where) {
  // Of other errors, the address isn't the reason.
  bool address = why.code == errc::unavailable;
  return fail(why.code,
              why.message + (address ? fmt::format("; {} in {} gives another address", key, where)
                                     : std::string{}));
}

} // namespace bulkhead
