#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>

#include <caf/all.hpp>
#include <fmt/format.h>

#include "actors/approval_store.hpp"
#include "actors/errors.hpp"
#include "main/commands.hpp"
#include "protocol/ledger_report.hpp"
#include "protocol/printable.hpp"
#include "protocol/run_python.hpp"

namespace bulkhead {

using namespace std::chrono_literals;

namespace {

constexpr std::size_t shown_description = 2'000;

struct tool_name {
  std::string server;
  std::string tool;
};

/// Server names hold no slash, tool names may. Errors: invalid_argument.
expected<tool_name> split(const std::string& text) {
  auto slash = text.find('/');
  if (slash == std::string::npos || slash == 0 || slash + 1 == text.size()) {
    return fail(
        errc::invalid_argument,
        fmt::format("\"{}\" names no tool; write SERVER/TOOL, e.g. github/delete_repo", text));
  }
  return tool_name{text.substr(0, slash), text.substr(slash + 1)};
}

/// The documents of a server, which is started for that; nothing when a signal came first.
std::optional<expected<documents_ptr>> ask_server(application& app, stop_signal& stop,
                                                  const server_entry& entry) {
  auto result = std::make_shared<expected<documents_ptr>>(fail(errc::internal, "no answer"));
  auto registry = app.services().registry;
  auto budget = entry.start_timeout + 5s;
  auto asker = app.system().spawn([=, &stop, name = entry.name](caf::event_based_actor* self) {
    auto failed = [=, &stop](const caf::error& reason) {
      *result = tl::unexpected{from_caf(reason, "ask server " + name + " for its tools")};
      stop.notify();
    };
    self->request(registry, 10s, client_atom::value, name)
        .then(
            [=, &stop](const mcp_client_actor& client) {
              auto due = deadline::at(std::chrono::steady_clock::now() + budget);
              self->request(client, budget + 1s, documents_atom::value, due)
                  .then(
                      [=, &stop](const documents_ptr& documents) {
                        *result = documents;
                        stop.notify();
                      },
                      failed);
            },
            failed);
  });
  if (stop.wait().value_or(0) != 0) {
    caf::anon_send_exit(asker, caf::exit_reason::kill);
    return std::nullopt;
  }
  return *result;
}

std::string definition_text(const std::string& server, const tool_document& tool) {
  return fmt::format("{}/{}\n  {}\n  {}\n  annotations: {}\n", server, tool_signature(tool),
                     tool.title, shortened(tool.description, shown_description),
                     tool.annotations.empty() ? "none" : tool.annotations);
}

std::int64_t milliseconds_now() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

int refuse(const error& reason, int status = 1) {
  complain(reason.message);
  return status;
}

int list_approvals(const std::vector<tool_approval>& approvals, int out) {
  std::string text;
  for (const auto& each : approvals) {
    text += fmt::format("{}  {}  {}/{}\n", time_text(each.at), each.what.definition.substr(0, 12),
                        each.what.server, each.what.tool);
  }
  return write_answer(out, printable(text), 0);
}

} // namespace

int show_approvals(const command_line& line, const settings& config, int out) {
  auto path = approvals_path(config);
  if (line.list) {
    auto approvals = read_approvals(path);
    return approvals ? list_approvals(*approvals, out) : refuse(approvals.error());
  }
  auto name = split(line.tool);
  if (!name) {
    return refuse(name.error(), 2);
  }
  std::size_t revoked = 0;
  auto changed = change_approvals(path, [&](std::vector<tool_approval>& approvals) {
    revoked = std::erase_if(approvals, [&](const tool_approval& each) {
      return names_tool(line.tool, each.what.server, each.what.tool);
    });
  });
  if (!changed) {
    return refuse(changed.error());
  }
  if (revoked == 0) {
    return refuse({errc::not_found, fmt::format("there is no approval of {}", line.tool)});
  }
  return write_answer(out, fmt::format("revoked {} approval{}\n", revoked, revoked > 1 ? "s" : ""),
                      0);
}

int approve_tool(application& app, stop_signal& stop, const command_line& line, int out) {
  auto name = split(line.tool);
  if (!name) {
    return refuse(name.error(), 2);
  }
  const auto& catalogue = *app.catalogue();
  auto server = find_server(name->server, catalogue);
  if (!server) {
    return refuse(server.error());
  }
  auto documents = ask_server(app, stop, *catalogue.find(*server));
  if (!documents) {
    complain("interrupted");
    return 130;
  }
  if (!*documents) {
    return refuse(documents->error());
  }
  const auto* tool = find_tool((**documents)->tools, name->tool);
  if (tool == nullptr) {
    return refuse(no_such_tool(***documents, name->tool));
  }
  auto verdict = allows_tool(catalogue.rules, *server, *tool);
  if (!verdict.allowed) {
    return refuse(
        {errc::denied, fmt::format("tool \"{}\" of \"{}\" is denied by policy, which no approval "
                                   "changes: {}",
                                   tool->name, *server, verdict.rule)});
  }
  tool_identity what{*server, tool->name, definition_digest(*tool)};
  auto stored = change_approvals(approvals_path(*app.env()->config), [&](auto& approvals) {
    add_approval(approvals, {what, milliseconds_now()});
  });
  if (!stored) {
    return refuse(stored.error());
  }
  auto text = definition_text(*server, *tool) +
              fmt::format("Approved, as it is defined now ({}). To take that back: bulkhead "
                          "approve --revoke {}/{}\n",
                          what.definition.substr(0, 12), *server, tool->name);
  if (!verdict.confirm) {
    text += "Policy doesn't ask for an approval of this tool.\n";
  }
  return write_answer(out, printable(text), 0);
}

} // namespace bulkhead
