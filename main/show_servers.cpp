#include <algorithm>

#include <caf/all.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "actors/errors.hpp"
#include "main/commands.hpp"
#include "main/logging.hpp"

namespace bulkhead {

using namespace std::chrono_literals;

namespace {

using nlohmann::json;

/// A server with what asking it for its tools gave.
struct listed_server {
  const server_entry* entry;
  documents_ptr documents;
  std::string failure;
};

void fetch_tools(application& app, std::vector<listed_server>& servers) {
  caf::scoped_actor self{app.system()};
  auto registry = app.services().registry;
  for (auto& server : servers) {
    auto budget = server.entry->start_timeout + 5s;
    auto failed = [&](const caf::error& reason) {
      server.failure = from_caf(reason, "list the tools of " + server.entry->name).message;
    };
    self->request(registry, 10s, client_atom::value, server.entry->name)
        .receive(
            [&](const mcp_client_actor& client) {
              auto due = deadline::at(std::chrono::steady_clock::now() + budget);
              self->request(client, budget + 1s, documents_atom::value, due)
                  .receive([&](const documents_ptr& documents) { server.documents = documents; },
                           failed);
            },
            failed);
  }
}

json as_json(const server_catalogue& catalogue, const std::vector<listed_server>& servers) {
  json result{{"servers", json::array()}, {"problems", json::array()}};
  for (const auto& server : servers) {
    const auto& entry = *server.entry;
    auto verdict = allows_server(catalogue.rules, entry.name);
    json row{{"name", entry.name},       {"alias", entry.alias},
             {"command", entry.command}, {"description", entry.description},
             {"source", entry.source},   {"allowed", verdict.allowed}};
    if (server.documents) {
      for (const auto& tool : server.documents->tools) {
        row["tools"].push_back(
            {{"name", tool.name},
             {"alias", tool.alias},
             {"allowed", allows_tool(catalogue.rules, entry.name, tool.name).allowed}});
      }
    }
    if (!server.failure.empty()) {
      row["error"] = server.failure;
    }
    result["servers"].push_back(std::move(row));
  }
  for (const auto& problem : catalogue.problems) {
    result["problems"].push_back(
        {{"file", problem.file}, {"entry", problem.entry}, {"message", problem.message}});
  }
  return result;
}

std::string as_text(const server_catalogue& catalogue, const std::vector<listed_server>& servers,
                    const std::string& state_dir) {
  std::string text;
  if (servers.empty()) {
    text = fmt::format("No MCP servers are configured. Put a file with \"mcpServers\" into {}.\n",
                       state_dir);
  }
  for (const auto& server : servers) {
    const auto& entry = *server.entry;
    auto verdict = allows_server(catalogue.rules, entry.name);
    text += fmt::format(
        "{}{}\n    code sees: mcp_{}\n    starts:    {}\n    from:      {}\n", entry.name,
        verdict.allowed ? "" : fmt::format("  (denied by policy: {})", verdict.rule), entry.alias,
        entry.command, entry.source);
    if (!server.failure.empty()) {
      text += fmt::format("    error:     {}\n", server.failure);
    }
    if (server.documents) {
      for (const auto& tool : server.documents->tools) {
        auto allowed = allows_tool(catalogue.rules, entry.name, tool.name);
        auto summary = tool.description.substr(0, tool.description.find('\n'));
        text += fmt::format("    {}{}  {}\n", tool_signature(tool),
                            allowed.allowed ? ""
                                            : fmt::format("  (denied by policy: {})", allowed.rule),
                            summary.substr(0, 100));
      }
    }
  }
  for (const auto& problem : catalogue.problems) {
    text += fmt::format("problem: {}{}{}: {}\n", problem.file, problem.entry.empty() ? "" : ": ",
                        problem.entry, problem.message);
  }
  return text;
}

} // namespace

int show_servers(application& app, const command_line& line, int out) {
  const auto& catalogue = *app.catalogue();
  std::vector<listed_server> servers;
  for (const auto& entry : catalogue.servers) {
    servers.push_back({&entry, nullptr, {}});
  }
  if (line.tools) {
    fetch_tools(app, servers);
  }
  if (line.json) {
    write_all(out, as_json(catalogue, servers).dump(2, ' ', false, json::error_handler_t::replace) +
                       "\n");
  } else {
    write_all(out, printable(as_text(catalogue, servers, app.env()->config.state_dir)));
  }
  auto failed = std::any_of(servers.begin(), servers.end(),
                            [](const auto& server) { return !server.failure.empty(); });
  return failed || !catalogue.problems.empty() ? 1 : 0;
}

} // namespace bulkhead
