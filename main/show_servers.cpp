#include <algorithm>
#include <memory>
#include <optional>

#include <caf/all.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "actors/errors.hpp"
#include "actors/tool_shelf.hpp"
#include "main/commands.hpp"
#include "main/server_texts.hpp"
#include "protocol/printable.hpp"

namespace bulkhead {

using namespace std::chrono_literals;

namespace {

using nlohmann::json;

/// A server with what asking it for its tools gave.
struct listed_server {
  const server_entry* entry;
  documents_ptr documents; ///< all of them
  documents_ptr allowed;   ///< what policy leaves
  std::string failure;
};

/// Thousands of tools take a second to index.
constexpr auto library_patience = 30s;

/// Asks one allowed server after the other for its tools; `servers` is complete once `stop` is
/// notified.
struct tool_fetcher : std::enable_shared_from_this<tool_fetcher> {
  catalogue_ptr catalogue;
  client_registry_actor registry;
  tool_library_actor library;
  stop_signal* stop = nullptr;
  std::vector<listed_server> servers;
  std::size_t next = 0;

  void proceed(caf::event_based_actor* self) {
    while (next < servers.size() &&
           !allows_server(catalogue->rules, servers[next].entry->name).allowed) {
      ++next;
    }
    if (next == servers.size()) {
      stop->notify();
      return;
    }
    auto mine = shared_from_this();
    auto budget = servers[next].entry->start_timeout + 5s;
    auto failed = [=](const caf::error& reason) {
      auto& server = mine->servers[mine->next++];
      server.failure = from_caf(reason, "list the tools of " + server.entry->name).message;
      mine->proceed(self);
    };
    self->request(registry, 10s, client_atom::value, servers[next].entry->name)
        .then(
            [=](const mcp_client_actor& client) {
              auto due = deadline::at(std::chrono::steady_clock::now() + budget);
              self->request(client, budget + 1s, documents_atom::value, due)
                  .then(
                      [=](const documents_ptr& documents) {
                        mine->servers[mine->next].documents = documents;
                        mine->hand_on(self, failed);
                      },
                      failed);
            },
            failed);
  }

  /// The library keeps them for searches of later runs, and applies policy.
  template <class Failed>
  void hand_on(caf::event_based_actor* self, Failed failed) {
    auto mine = shared_from_this();
    self->request(library, library_patience, documents_atom::value, catalogue,
                  servers[next].documents)
        .then(
            [=](const tool_shelf_ptr& shelf) {
              mine->servers[mine->next++].allowed = shelf->documents;
              mine->proceed(self);
            },
            failed);
  }
};

/// The servers of the catalogue, or the one that is wanted, with their tools if those are wanted;
/// nothing when a signal came first.
std::optional<std::vector<listed_server>> list_servers(application& app, stop_signal& stop,
                                                       const command_line& line) {
  auto fetcher = std::make_shared<tool_fetcher>();
  fetcher->catalogue = app.catalogue();
  for (const auto& entry : fetcher->catalogue->servers) {
    if (line.only_server.empty() || line.only_server == entry.name ||
        line.only_server == entry.alias) {
      fetcher->servers.push_back({&entry, nullptr, nullptr, {}});
    }
  }
  if (line.tools || line.stubs) {
    fetcher->registry = app.services().registry;
    fetcher->library = app.services().library;
    fetcher->stop = &stop;
    auto asker =
        app.system().spawn([fetcher](caf::event_based_actor* self) { fetcher->proceed(self); });
    if (stop.wait().value_or(0) != 0) {
      caf::anon_send_exit(asker, caf::exit_reason::kill);
      return {};
    }
  }
  return fetcher->servers;
}

json transport_json(const server_entry& entry) {
  switch (entry.transport) {
  case server_transport::stdio:
    return {{"transport", "stdio"}, {"command", entry.command}, {"args", entry.shown_args}};
  case server_transport::http:
    return {{"transport", "http"}, {"url", entry.shown_url}};
  case server_transport::sse:
    return {{"transport", "sse"}, {"url", entry.shown_url}};
  }
  return json::object();
}

/// Each file that was read, and what became of what it defines.
json sources_json(const server_catalogue& catalogue) {
  auto result = json::array();
  for (const auto& source : catalogue.sources) {
    json row{{"file", source.path}, {"servers", json::array()}};
    if (!source.host.empty()) {
      row["host"] = source.host;
    }
    for (const auto& each : source.servers) {
      json server{{"name", each.name}, {"state", to_string(each.state)}};
      if (!each.shadowed_by.empty()) {
        server["shadowedBy"] = each.shadowed_by;
      }
      row["servers"].push_back(std::move(server));
    }
    result.push_back(std::move(row));
  }
  return result;
}

json as_json(const server_catalogue& catalogue, const std::vector<listed_server>& servers) {
  json result{{"servers", json::array()},
              {"policy", describe(catalogue.rules)},
              {"problems", json::array()}};
  for (const auto& server : servers) {
    const auto& entry = *server.entry;
    auto verdict = allows_server(catalogue.rules, entry.name);
    json row{{"name", entry.name},
             {"alias", entry.alias},
             {"description", entry.description},
             {"source", entry.source},
             {"allowed", verdict.allowed}};
    row.update(transport_json(entry));
    if (auto filter = catalogue.rules.filters.find(entry.name);
        filter != catalogue.rules.filters.end()) {
      row["excludeTools"] = filter->second.exclude;
      if (filter->second.include) {
        row["includeTools"] = *filter->second.include;
      }
    }
    if (!verdict.allowed) {
      row["deniedBy"] = verdict.rule;
    }
    if (server.documents) {
      for (const auto& tool : server.documents->tools) {
        auto verdict = allows_tool(catalogue.rules, entry.name, tool);
        row["tools"].push_back({{"name", tool.name},
                                {"alias", tool.alias},
                                {"allowed", verdict.allowed},
                                {"confirm", verdict.confirm}});
      }
      row["hiddenTools"] = server.documents->hidden;
    }
    if (!server.failure.empty()) {
      row["error"] = server.failure;
    }
    result["servers"].push_back(std::move(row));
  }
  result["sources"] = sources_json(catalogue);
  for (const auto& entry : catalogue.disabled) {
    result["disabled"].push_back({{"name", entry.name}, {"source", entry.source}});
  }
  for (const auto& problem : catalogue.problems) {
    result["problems"].push_back({{"kind", to_string(problem.kind)},
                                  {"file", problem.file},
                                  {"entry", problem.entry},
                                  {"message", problem.message}});
  }
  return result;
}

/// The rule that denies, unless it is the same for all and told apart.
std::string rule_text(const server_catalogue& catalogue, const policy_verdict& verdict) {
  return catalogue.rules.closed.empty() ? ": " + verdict.rule : std::string{};
}

/// What each file gave, a line a file, and what of it another file's definition took the place of.
std::string sources_text(const server_catalogue& catalogue) {
  std::string text;
  for (const auto& source : catalogue.sources) {
    std::vector<std::string> names;
    for (const auto& each : source.servers) {
      auto state =
          each.state == definition_state::used       ? std::string{}
          : each.state == definition_state::shadowed ? " (shadowed by " + each.shadowed_by + ")"
          : each.state == definition_state::itself   ? " (this program itself)"
                                                     : fmt::format(" ({})", to_string(each.state));
      names.push_back(each.name + state);
    }
    if (!names.empty()) {
      text += fmt::format("  {}{}: {}\n", source.path,
                          source.host.empty() ? "" : fmt::format(" (a link to {})", source.host),
                          fmt::join(names, ", "));
    }
  }
  return text.empty() ? text : "Defined in\n" + text;
}

std::string as_text(const server_catalogue& catalogue, const std::vector<listed_server>& servers,
                    const std::string& state_dir) {
  std::string text;
  if (!catalogue.rules.closed.empty()) {
    text = "Nothing is allowed: see the errors below.\n";
  } else if (servers.empty() && catalogue.disabled.empty()) {
    text = fmt::format("No MCP servers are configured. Put a file with \"mcpServers\" into {}.\n",
                       state_dir);
  }
  for (const auto& server : servers) {
    const auto& entry = *server.entry;
    auto verdict = allows_server(catalogue.rules, entry.name);
    text += fmt::format(
        "{}{}\n    code sees: mcp_{}\n{}    from:      {}\n", entry.name,
        verdict.allowed ? "" : fmt::format("  (denied by policy{})", rule_text(catalogue, verdict)),
        entry.alias, entry_text(entry), entry.source);
    if (!server.failure.empty()) {
      text += fmt::format("    error:     {}\n", server.failure);
    }
    if (server.documents) {
      for (const auto& tool : server.documents->tools) {
        auto allowed = allows_tool(catalogue.rules, entry.name, tool);
        auto summary = tool.description.substr(0, tool.description.find('\n'));
        text += fmt::format("    {}{}  {}\n", tool_signature(tool),
                            allowed.confirm   ? "  (asks a person first)"
                            : allowed.allowed ? ""
                                              : fmt::format("  (denied by policy{})",
                                                            rule_text(catalogue, allowed)),
                            summary.substr(0, 100));
      }
      if (auto hidden = server.documents->hidden; hidden > 0) {
        text += fmt::format(
            "    and {} that can only be called as tasks, which Bulkhead doesn't do\n", hidden);
      }
    }
  }
  for (const auto& entry : catalogue.disabled) {
    text += fmt::format("{}  (disabled)\n    from:      {}\n", entry.name, entry.source);
  }
  if (catalogue.rules.closed.empty()) {
    for (const auto& rule : describe(catalogue.rules)) {
      text += fmt::format("policy: {}\n", rule);
    }
  }
  text += sources_text(catalogue);
  for (const auto& problem : catalogue.problems) {
    text += fmt::format("{}: {}\n", to_string(problem.kind), to_text(problem));
  }
  return text;
}

/// As files of one package: those whose code imports `mcp.servers.<alias>` see them so.
std::string as_stubs(const std::vector<listed_server>& servers, bool as_json) {
  json files = json::object();
  std::string text;
  for (const auto& server : servers) {
    if (server.allowed) {
      auto stub = tool_stubs(*server.allowed);
      files["mcp/servers/" + server.entry->alias + ".pyi"] = stub;
      text += fmt::format("# mcp/servers/{}.pyi\n{}", server.entry->alias, stub);
    } else if (!server.failure.empty()) {
      complain(server.failure);
    }
  }
  return as_json ? files.dump(2, ' ', false, json::error_handler_t::replace) + "\n" : text;
}

/// There is no such server: what may have been meant.
std::string unknown_server(const server_catalogue& catalogue, const std::string& name) {
  std::vector<std::string> names;
  for (const auto& entry : catalogue.servers) {
    names.push_back(entry.name);
  }
  auto similar = similar_names(name, names);
  return fmt::format("there is no MCP server \"{}\"{}", printable(name),
                     similar.empty() ? "; \"bulkhead servers\" shows those that there are"
                                     : fmt::format("; did you mean \"{}\"?", similar.front()));
}

} // namespace

int show_servers(application& app, stop_signal& stop, const command_line& line, int out) {
  auto configured = app.catalogue();
  const auto& catalogue = *configured;
  if (!line.only_server.empty() && catalogue.find(line.only_server) == nullptr) {
    complain(unknown_server(catalogue, line.only_server));
    return 2;
  }
  auto servers = list_servers(app, stop, line);
  if (!servers) {
    complain("interrupted");
    return 130;
  }
  auto text =
      line.stubs ? as_stubs(*servers, line.json)
      : line.json
          ? as_json(catalogue, *servers).dump(2, ' ', false, json::error_handler_t::replace) + "\n"
          : as_text(catalogue, *servers, app.env()->config->state_dir);
  auto failed = std::any_of(servers->begin(), servers->end(),
                            [](const auto& server) { return !server.failure.empty(); });
  return write_answer(out, printable(text), failed || catalogue.has_errors() ? 1 : 0);
}

} // namespace bulkhead
