#include "protocol/host_config.hpp"

#include <algorithm>

#include "protocol/config_text.hpp"
#include "tests/fuzz/catalogue_checks.hpp"

namespace bulkhead::fuzz {

namespace {

void check_problems(const std::vector<config_problem>& problems) {
  for (const auto& problem : problems) {
    require_message(problem.message);
    require(problem.message.find("s3cret-value") == std::string::npos, "a problem tells no secret");
  }
}

void check_host(mcp_host host, host_scope scope, std::string_view text, bool switches) {
  const auto* project = scope == host_scope::user ? "" : "/home/u/project";
  const host_file file{"/home/u/file", std::string{text}, scope, switches};
  const host_reader_context context{host, "/home/u", project, look_up};
  auto read = read_host_files({file}, context);
  check_problems(read.problems);
  require(read.servers.is_object(), "servers are an object");
  for (const auto& [name, entry] : read.servers.items()) {
    require(entry.is_object() && read.sources.contains(name), "a server comes from somewhere");
  }
  auto document = nlohmann::json{{"mcpServers", read.servers}}.dump();
  require(document.find("s3cret-value") == std::string::npos, "variables stay variables");
  config_file own{"/home/u/MCPs/linked.json", document};
  own.imported = imported_file{std::string{title_of(host)}, read.sources, read.problems};
  auto catalogue = read_server_config({own}, look_up, "/home/u", {});
  check_catalogue(catalogue);
  require(catalogue.rules.closed.empty(), "what another program says closes no policy");
  for (const auto& problem : catalogue.problems) {
    bool known =
        std::find(read.problems.begin(), read.problems.end(), problem) != read.problems.end();
    require(known || !problem.entry.empty() || read.servers.contains(""),
            "what is written for our reader is read by it");
  }
}

} // namespace

/// A byte for the program, one for whose file it is, and the file.
void host_config_target(std::string_view input) {
  const auto host = all_hosts.at(take_number(input, all_hosts.size() - 1));
  const auto how = take_number(input, 5);
  const auto scope = static_cast<host_scope>(how % 3);
  // What the text holds of the secret by itself tells nothing of what becomes of variables.
  if (input.find("s3cret") != std::string_view::npos || input.size() > 4096) {
    return;
  }
  check_host(host, scope, input, how > 2);
}

} // namespace bulkhead::fuzz
