#include "actors/environment.hpp"

#include <array>
#include <string_view>

namespace bulkhead {

std::vector<std::string> minimal_environment(const environment& env) {
  static constexpr std::array names = {"PATH",
                                       "HOME",
                                       "USER",
                                       "LOGNAME",
                                       "LANG",
                                       "LC_ALL",
                                       "TZ",
                                       "TMPDIR",
                                       "SHELL",
                                       "TERM",
                                       "XDG_RUNTIME_DIR",
                                       "XDG_CONFIG_HOME",
                                       "XDG_DATA_HOME",
                                       "XDG_CACHE_HOME",
                                       "XDG_STATE_HOME",
                                       "HTTP_PROXY",
                                       "HTTPS_PROXY",
                                       "NO_PROXY",
                                       "http_proxy",
                                       "https_proxy",
                                       "no_proxy",
                                       "SSL_CERT_FILE",
                                       "SSL_CERT_DIR"};
  std::vector<std::string> result;
  for (const char* name : names) {
    if (auto value = env.variable(name)) {
      result.push_back(std::string{name} + "=" + *value);
    }
  }
  return result;
}

} // namespace bulkhead
