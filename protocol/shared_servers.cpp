#include "protocol/shared_servers.hpp"

#include <set>

#include <nlohmann/json.hpp>

#include "protocol/config_text.hpp"
#include "protocol/policy.hpp"
#include "protocol/server_config.hpp"

namespace bulkhead {

expected<selected_servers> select_servers(std::string_view text,
                                          const std::vector<std::string>& globs) {
  auto document = read_config_json(text, {largest_config_file});
  if (!document) {
    return tl::unexpected{document.error()};
  }
  std::set<std::string> matched;
  auto is_theirs = [&](const std::string& name) {
    bool matches = false;
    for (const auto& glob : globs) {
      if (glob_match(glob, name)) {
        matched.insert(glob);
        matches = true;
      }
    }
    return matches;
  };
  for (const char* key : {"mcpServers", "servers"}) {
    auto servers = document->find(key);
    if (servers == document->end() || !servers->is_object()) {
      continue;
    }
    for (auto each = servers->begin(); each != servers->end();) {
      each = is_theirs(each.key()) ? std::next(each) : servers->erase(each);
    }
  }
  selected_servers result{document->dump(), {}};
  for (const auto& glob : globs) {
    if (!matched.contains(glob)) {
      result.unmatched.push_back(glob);
    }
  }
  return result;
}

} // namespace bulkhead
