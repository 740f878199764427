#include "main/command_line.hpp"

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <utility>
#include <vector>

#include <unistd.h>

#include <CLI/CLI.hpp>

#include "main/likely_command.hpp"
#include "main/output.hpp"
#include "protocol/host_config.hpp"
#include "protocol/image_profiles.hpp"
#include "protocol/printable.hpp"

namespace bulkhead {

namespace {

constexpr const char* about =
    "Bulkhead runs untrusted Python in a locked-down rootless container and lets it call your MCP\n"
    "servers through the host. Without a command it is an MCP server on stdin and stdout.";

constexpr const char* examples = R"(Examples:
  bulkhead                              serve MCP on stdio (what an agent runs)
  bulkhead run script.py                run a file; exits with the code's own status
  echo 'print(6*7)' | bulkhead run -    run standard input
  bulkhead run --server files job.py    let the code call the MCP server "files"
  bulkhead doctor                       what is enforced on this machine, and what to do
  bulkhead servers --tools              which MCP servers and tools were found
  bulkhead servers --stubs files        the tools of one as Python type stubs
  bulkhead approve github/delete_repo   allow a tool that policy wants a person's yes for
  bulkhead ledger --calls --since 2h    which tools were called, and how that ended
  bulkhead login issues                 log in to the MCP server "issues" by OAuth
  bulkhead servers import claude-code   take over the servers that Claude Code has, after asking
  bulkhead ledger --tenant ali          what ran for a tenant of `bulkhead serve`
  bulkhead token new ali --expires 90d  let the tenant "ali" in over HTTP (see bulkhead.toml)
  bulkhead image build                  make the sandbox image from Debian packages
  bulkhead image build --profile data   the one with numpy, pandas, matplotlib and more

Configuration: ~/MCPs/*.json (mcpServers) and MCP_BRIDGE_* variables; see README.md.)";

constexpr double longest_timeout_seconds = 86'400;

/// Reads the seconds of --timeout. Throws CLI::ValidationError.
std::chrono::milliseconds read_timeout(const std::string& text) {
  double seconds = 0;
  auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  // Written so that NaN fails, too.
  if (failure != std::errc{} || end != text.data() + text.size() || !(seconds >= 0.001) ||
      !(seconds <= longest_timeout_seconds)) {
    throw CLI::ValidationError("--timeout", "must be seconds, from 0.001 to 86400, but is \"" +
                                                text.substr(0, 40) + "\"");
  }
  return std::chrono::milliseconds{std::llround(seconds * 1000)};
}

void add_serve_config(CLI::App& command, command_line& result) {
  command
      .add_option_function<std::string>(
          "--config",
          [&result](const std::string& path) {
            // The account that root becomes may not get to where we are now.
            result.serve_config = std::filesystem::absolute(path).lexically_normal().string();
          },
          "The file with the tenants (default: MCP_BRIDGE_SERVE_CONFIG, or bulkhead.toml in the "
          "state folder)")
      ->type_name("FILE");
}

/// What looks at one tenant of a server for many, and not at the user's own.
void add_tenant_option(CLI::App& command, command_line& result) {
  command.add_option("--tenant", result.tenant, "Those of this tenant of `bulkhead serve`")
      ->type_name("NAME");
  add_serve_config(command, result);
}

CLI::App* add_run(CLI::App& app, command_line& result) {
  auto* run = app.add_subcommand("run", "Run a Python file in a sandbox, output as it comes");
  run->add_option("FILE", result.file, "A path, or - for standard input")->required();
  run->add_option("--server", result.servers, "An MCP server that the code may call (repeatable)")
      ->allow_extra_args(false);
  run->add_option_function<std::string>(
         "--timeout", [&result](const std::string& text) { result.timeout = read_timeout(text); },
         "Seconds until the code is stopped, from 0.001 to 86400")
      ->type_name("SECONDS");
  run->add_flag("--json", result.json, "Print the run as JSON instead of its output");
  return run;
}

CLI::App* add_ledger(CLI::App& app, command_line& result) {
  auto* ledger = app.add_subcommand("ledger", "Show what ran and which tools were called");
  auto& query = result.records;
  query.limit = 0;
  auto* runs = ledger->add_flag("--runs")->description("The runs (the default)");
  ledger->add_flag("--calls", query.calls, "The tool calls, denied ones too")->excludes(runs);
  ledger->add_option("--server", query.server, "Only with servers of this name")->type_name("GLOB");
  ledger->add_option("--tool", query.tool, "Only with tools of this name")->type_name("GLOB");
  ledger
      ->add_option("--outcome", query.outcome,
                   "Only those that ended so: success, error, timeout, denied, tool_error, …")
      ->type_name("NAME");
  ledger->add_option("--since", result.since, "Only later ones: 90s, 30m, 2h, 7d, or a date (UTC)")
      ->type_name("TIME");
  ledger->add_option("--run", query.run, "Only of the run with this id, or beginning of one")
      ->type_name("ID");
  ledger->add_option("--limit", query.limit, "At most so many, the newest (default: 100)")
      ->check(CLI::PositiveNumber)
      ->type_name("N");
  auto* csv = ledger->add_flag("--csv", result.csv, "As CSV");
  ledger->add_flag("--json", result.json, "As JSON")->excludes(csv);
  ledger
      ->add_option("--export", result.export_file,
                   "Write them, all unless --limit is given, to a new file, as CSV if its name "
                   "ends in .csv, else as JSON")
      ->type_name("FILE");
  add_tenant_option(*ledger, result);
  return ledger;
}

CLI::App* add_approve(CLI::App& app, command_line& result) {
  auto* approve = app.add_subcommand(
      "approve", "Allow a tool that policy wants a person's yes for, as it is defined now");
  auto* tool = approve->add_option("TOOL", result.tool, "SERVER/TOOL; with --revoke a pattern");
  auto* list = approve->add_flag("--list", result.list, "Show what is approved");
  approve->add_flag("--revoke", result.revoke, "Take an approval back")->excludes(list);
  tool->excludes(list);
  approve->callback([&result] {
    if (!result.list && result.tool.empty()) {
      throw CLI::RequiredError("TOOL");
    }
  });
  return approve;
}

CLI::App* add_login(CLI::App& app, command_line& result) {
  auto* login = app.add_subcommand("login", "Log in to an MCP server that wants it (OAuth)");
  login->add_option("SERVER", result.server, "Its name, or its URL")->required();
  login->add_flag("!--no-browser", result.browser, "Only print the page to open");
  login->add_option("--scope", result.scope, "What to ask for, parted by spaces")
      ->type_name("SCOPES");
  login
      ->add_option("--client-id", result.client_id,
                   "A client that was registered by hand; its secret, if it has one, comes from "
                   "the variable BULKHEAD_CLIENT_SECRET")
      ->type_name("ID");
  login
      ->add_option("--client-document", result.client_document,
                   "The https URL of a client-id metadata document to go by")
      ->type_name("URL");
  login
      ->add_option("--callback-port", result.callback_port,
                   "The port on 127.0.0.1 for the browser's answer (default: any)")
      ->type_name("PORT");
  login
      ->add_option_function<std::uint32_t>(
          "--timeout",
          [&result](std::uint32_t seconds) {
            result.login_timeout = std::chrono::seconds{seconds};
          },
          "Seconds to wait for the browser (default: 300)")
      ->check(CLI::Range(1, 3600))
      ->type_name("SECONDS");
  login->add_flag("--private-network", result.private_network,
                  "Servers that the server names may be in a private network");
  return login;
}

CLI::App* add_logout(CLI::App& app, command_line& result) {
  auto* logout = app.add_subcommand("logout", "Forget the login to an MCP server");
  logout->add_option("SERVER", result.server, "Its name, or its URL")->required();
  return logout;
}

constexpr const char* import_help = R"(
Hosts: claude-code, claude-desktop, cursor, vscode, windsurf, gemini, codex, opencode, zed, goose.
Without --file, a host's usual files are looked for in the home of whoever runs the command; root
reads its own, before it becomes the account that the servers will run as. That account can't read
root's home, so root copies and doesn't link. With --project, the definitions that are for that
project alone are taken, after you approved their content. Variables stay variables; but servers get
a minimal environment here, so name in "env" or "envVars" what one needs of yours. Nothing but this
command takes over other programs' definitions.)";

CLI::App* add_import(CLI::App& servers, command_line& result) {
  auto* import = servers.add_subcommand("import", "Take over the servers of another program");
  std::vector<std::string> names;
  for (auto host : all_hosts) {
    names.emplace_back(to_string(host));
  }
  import->add_option("HOST", result.import_host, "The program that has them")
      ->required()
      ->check(CLI::IsMember(names))
      ->type_name("");
  import->add_option("--file", result.file,
                     "Its file, if not the usual ones; - for standard input");
  import->add_option("--project", result.project, "What is for the project in this folder alone")
      ->type_name("DIR");
  auto* link = import->add_flag("--link", result.link,
                                "Read its files anew whenever they change, those of a project only "
                                "as approved");
  import->add_flag("--copy", result.copy, "Copy them into a file of the state folder (the default)")
      ->excludes(link);
  import->add_flag("--yes", result.yes, "Don't ask");
  import->add_flag("--dry-run", result.dry_run, "Only show what would be taken over");
  return import;
}

struct token_commands {
  CLI::App* make;
  CLI::App* list;
  CLI::App* revoke;
  CLI::App* rotate;
};

constexpr const char* token_help = R"(
A token is printed once, when it is made; the file keeps its SHA-256 alone. A server that runs notices
changes of the file by itself.)";

token_commands add_token(CLI::App& app, command_line& result) {
  auto* token = app.add_subcommand("token", "Make, list and revoke the tokens of tenants");
  token->require_subcommand(1);
  token->footer(token_help);
  auto add = [&](const char* name, const char* what, bool tenant) {
    auto* command = token->add_subcommand(name, what);
    command->footer("");
    auto* option = command->add_option("TENANT", result.tenant, "Whose");
    option->required(tenant);
    add_serve_config(*command, result);
    return command;
  };
  auto expires = [&](CLI::App* command, const char* what) {
    command->add_option("--expires", result.expires, what)->type_name("TIME");
  };
  auto* make = add("new", "Make a token and print it", true);
  make->add_option("--id", result.token_id, "What people and logs call it (default: token-1, …)")
      ->type_name("ID");
  expires(make, "When it ends: after 90d, 12h, …, or a date (UTC; default: never)");
  make->add_flag("--add-tenant", result.add_tenant, "Make the tenant, and the file, if need be");
  auto* list = add("list", "Show which tokens there are, without themselves", false);
  auto* revoke = add("revoke", "Take a token away", true);
  revoke->add_option("ID", result.token_id, "Which")->required();
  auto* rotate = add("rotate", "Make and print a token in the place of another", true);
  rotate->add_option("ID", result.token_id, "Which")->required();
  rotate
      ->add_option("--grace", result.grace,
                   "How long the old one stays valid, e.g. 1h (default: not at all)")
      ->type_name("SPAN");
  expires(rotate, "When the new one ends (default: when the old one would have)");
  return {make, list, revoke, rotate};
}

CLI::App* add_build(CLI::App& image, command_line& result) {
  auto* build = image.add_subcommand("build", "Make the image from Debian packages, or pull one");
  auto* pull = build->add_flag("--pull", result.pull, "Pull a registry image instead");
  build->add_option("REFERENCE", result.image_reference,
                    "What to pull (default: python:3.13-slim)");
  std::vector<std::string> names;
  for (const auto& each : image_profiles) {
    names.emplace_back(each.name);
  }
  build
      ->add_option("--profile", result.profile,
                   "minimal: Python alone (the default); data: numpy, pandas, matplotlib, scipy, "
                   "Pillow, too, some 700 MB. MCP_BRIDGE_IMAGE=data then makes runs use it")
      ->check(CLI::IsMember(names))
      ->type_name("NAME")
      ->excludes(pull);
  build->add_flag("--rebuild", result.rebuild, "Even if the image is current");
  return build;
}

CLI::App* add_serve(CLI::App& app, command_line& result) {
  auto* serve = app.add_subcommand("serve", "Serve MCP over HTTP, for one or several tenants");
  add_serve_config(*serve, result);
  serve->add_option("--listen", result.listen,
                    "HOST:PORT, in place of what the file says (default: 127.0.0.1:8765)");
  serve->footer(
      "Without a file with tenants there is one, whose token is printed: for a first try.");
  return serve;
}

/// For tests: not in the help.
CLI::App* add_conformance_server(CLI::App& app, command_line& result) {
  using access = command_line::http_access;
  auto* server = app.add_subcommand("conformance-server", "MCP over HTTP on loopback, for tests");
  server->group("");
  server->add_option("--port", result.port, "0: one that is free");
  server->add_flag_callback("--fixtures", [&result] { result.access = access::fixtures; });
  server->add_flag_callback("--no-runs", [&result] { result.access = access::no_runs; });
  return server;
}

} // namespace

command_line parse_command_line(int argc, char** argv, int out) {
  command_line result;
  CLI::App app{about, "bulkhead"};
  app.footer(examples);
  app.set_version_flag("--version", std::string{"bulkhead "} + BULKHEAD_VERSION);
  app.require_subcommand(0, 1);
  app.add_option("--account", result.account,
                 "The account that Bulkhead becomes when root starts it")
      ->capture_default_str();

  auto* serve = add_serve(app, result);
  auto* run = add_run(app, result);
  auto* doctor =
      app.add_subcommand("doctor", "Show what is enforced here, constraint by constraint");
  doctor->add_flag("--json", result.json, "As JSON");
  doctor->add_flag("--sweep", result.sweep, "Only remove what killed instances left behind");

  auto* servers =
      app.add_subcommand("servers", "Show the MCP servers found, from where, and errors");
  servers->add_flag("--tools", result.tools, "Start each server and list its tools");
  servers->add_flag("--stubs", result.stubs,
                    "Start them and print their tools as Python type stubs (.pyi)");
  servers->add_option("NAME", result.only_server, "Only this server");
  servers->add_flag("--json", result.json, "As JSON");
  add_tenant_option(*servers, result);
  servers->require_subcommand(0, 1);
  auto* import = add_import(*servers, result);

  auto* login = add_login(app, result);
  auto* logout = add_logout(app, result);

  auto* ledger = add_ledger(app, result);
  auto* approve = add_approve(app, result);
  auto token = add_token(app, result);
  auto* image = app.add_subcommand("image", "The sandbox image");
  image->require_subcommand(1);
  auto* build = add_build(*image, result);

  auto* conformance_server = add_conformance_server(app, result);
  auto* conformance_client =
      app.add_subcommand("conformance-client", "Drives a server of MCP's conformance suite");
  conformance_client->group("");
  conformance_client->add_option("url", result.server)->required();

  // A command's help takes its parent's footer otherwise.
  for (auto* command : {run, doctor, servers, ledger, approve, login, logout, image, build}) {
    command->footer("");
  }
  import->footer(import_help);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& outcome) {
    std::ostringstream help;
    std::ostringstream complaint;
    int status = app.exit(outcome, help, complaint);
    complaint << likely_command(app);
    // What was typed wrong is quoted.
    write_all(STDERR_FILENO, printable(complaint.str()));
    std::exit(write_answer(out, help.str(), status == 0 ? 0 : 2));
  }
  using verb = command_line::verb;
  const std::pair<const CLI::App*, verb> commands[] = {
      {serve, verb::serve},
      {run, verb::run},
      {doctor, verb::doctor},
      {servers, verb::servers},
      {import, verb::servers_import},
      {ledger, verb::ledger},
      {approve, verb::approve},
      {login, verb::login},
      {logout, verb::logout},
      {image, verb::image_build},
      {token.make, verb::token_new},
      {token.list, verb::token_list},
      {token.revoke, verb::token_revoke},
      {token.rotate, verb::token_rotate},
      {conformance_server, verb::conformance_server},
      {conformance_client, verb::conformance_client},
  };
  for (const auto& [command, what] : commands) {
    if (command->parsed()) {
      result.what = what;
    }
  }
  return result;
}

} // namespace bulkhead
