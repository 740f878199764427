#include "main/import_servers.hpp"

#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "main/configuration.hpp"
#include "main/linked_files.hpp"
#include "main/output.hpp"
#include "main/private_file.hpp"
#include "main/server_texts.hpp"
#include "protocol/printable.hpp"

namespace bulkhead {

namespace {

using nlohmann::json;

/// An import with what it would do.
struct import_plan {
  const collected_import& collected;
  const account& who;
  std::string target;          ///< the file to be written
  json document;               ///< its content
  server_catalogue catalogue;  ///< what all files would say then
  const config_source* source; ///< this import's part of that
  bool replaces = false;       ///< there is such a file already
};

/// Of what was read, what a copy has: an entry that starts this program would only start servers of
/// its own.
json without_itself(const json& servers, const config_source& source) {
  auto result = servers;
  for (const auto& each : source.servers) {
    if (each.state == definition_state::itself) {
      result.erase(each.name);
    }
  }
  return result;
}

const config_source* find_source(const server_catalogue& catalogue, const std::string& path) {
  auto found = std::find_if(catalogue.sources.begin(), catalogue.sources.end(),
                            [&](const auto& each) { return each.path == path; });
  return found != catalogue.sources.end() ? &*found : nullptr;
}

json document_of(const collected_import& collected) {
  json document{{"import", to_json(collected.record)}};
  if (!collected.record.linked) {
    document["mcpServers"] = collected.servers.servers;
  }
  return document;
}

/// What all files would say with this import among them.
server_catalogue preview(const import_plan& plan, const settings& config,
                         const std::string& executable) {
  const auto& collected = plan.collected;
  imported_file imported{std::string{title_of(collected.record.host)}, collected.servers.sources,
                         collected.servers.problems};
  json servers{{"mcpServers", collected.servers.servers}};
  load_options options;
  options.instead[plan.target] = {plan.target, servers.dump(), {}, std::move(imported)};
  return load_configuration(config, plan.who, executable, options).catalogue;
}

/// What the entry says of its tools, and what it gets from outside of the file.
std::string entry_notes(const json& entry) {
  auto list = [&](const char* key, std::string_view before) {
    auto found = entry.find(key);
    if (found == entry.end() || !found->is_array()) {
      return std::string{};
    }
    std::vector<std::string> names;
    for (const auto& each : *found) {
      names.push_back(each.is_string() ? each.get<std::string>() : std::string{"?"});
    }
    return fmt::format("    {}{}\n", before,
                       names.empty() ? std::string{"none"}
                                     : fmt::format("{}", fmt::join(names, ", ")));
  };
  auto keys = [&](const char* key, std::string_view before) {
    auto found = entry.find(key);
    if (found == entry.end() || !found->is_object() || found->empty()) {
      return std::string{};
    }
    std::vector<std::string> names;
    for (const auto& [name, value] : found->items()) {
      names.push_back(name);
    }
    return fmt::format("    {}{}\n", before, fmt::join(names, ", "));
  };
  auto text = keys("env", "variables: ") + keys("headers", "headers:   ");
  if (auto file = entry.find("envFile"); file != entry.end() && file->is_string()) {
    text += fmt::format("    variables: those in {}\n", file->get<std::string>());
  }
  return text + list("envVars", "variables: your own ") + list("includeTools", "tools:     only ") +
         list("excludeTools", "tools:     not ");
}

std::string server_text(const import_plan& plan, const source_server& server) {
  const auto& entry = plan.collected.servers.servers.at(server.name);
  auto text = fmt::format("  {}", server.name);
  switch (server.state) {
  case definition_state::disabled:
    text += "  (disabled)";
    break;
  case definition_state::unusable:
    text += "  (can't be used yet, see below)";
    break;
  case definition_state::shadowed:
    text += fmt::format("  (has no effect: {} has another of that name)", server.shadowed_by);
    break;
  case definition_state::itself:
    return text + "  (left out: it is this program itself)\n";
  case definition_state::used:
    break;
  }
  return text + "\n" + unread_entry_text(entry) + entry_notes(entry);
}

/// The problems that concern this import, errors first.
std::string problem_texts(const import_plan& plan) {
  std::string text;
  for (auto kind : {problem_kind::error, problem_kind::remark}) {
    for (const auto& each : plan.catalogue.problems) {
      bool ours = each.file == plan.target ||
                  std::any_of(plan.collected.files.begin(), plan.collected.files.end(),
                              [&](const auto& file) { return file.path == each.file; });
      // That another of the same name is shadowed is told apart.
      if (ours && each.kind == kind) {
        text += fmt::format("{}: {}{}{}\n", to_string(kind), each.entry,
                            each.entry.empty() ? "" : ": ", each.message);
      }
    }
  }
  return text;
}

/// The definitions of other files that would no longer count.
std::string shadow_texts(const import_plan& plan) {
  std::string text;
  for (const auto& source : plan.catalogue.sources) {
    for (const auto& each : source.servers) {
      auto mine = plan.collected.servers.sources.find(each.name);
      if (&source != plan.source && each.state == definition_state::shadowed &&
          mine != plan.collected.servers.sources.end() && each.shadowed_by == mine->second) {
        text += fmt::format("\"{}\" of {} would have no effect any more: this one has its name.\n",
                            each.name, source.path);
      }
    }
  }
  return text;
}

std::string plan_text(const import_plan& plan) {
  const auto& record = plan.collected.record;
  auto text = fmt::format("{}, from", title_of(record.host));
  for (const auto& file : plan.collected.files) {
    text += " " + (plan.collected.from_input ? "standard input" : file.path);
  }
  text += ":\n";
  for (const auto& each : plan.source->servers) {
    text += server_text(plan, each);
  }
  if (plan.source->servers.empty()) {
    text += "  no servers\n";
  }
  text += problem_texts(plan) + shadow_texts(plan);
  if (plan.who.changed) {
    text += fmt::format("They will run as the account \"{}\", which can't read what lies in {}.\n",
                        plan.who.name, record.home);
  }
  if (!record.project.empty()) {
    text += fmt::format("These are a project's own definitions. With yes you approve exactly this "
                        "content{}.\n",
                        record.linked ? "; once it changes, they aren't used until you approve anew"
                                      : "");
  }
  return text + fmt::format("{} {}{}\n",
                            plan.replaces ? "To be replaced:" : "To be written:", plan.target,
                            record.linked ? ", a link: the files are read anew whenever they change"
                                          : ", a copy: later changes of the files don't reach it");
}

/// Asks on the terminal; anything but yes is no.
bool confirmed(int in) {
  write_all(STDERR_FILENO, "Take this over? [y/N] ");
  std::string answer;
  char c = 0;
  while (answer.size() < 16 && ::read(in, &c, 1) == 1 && c != '\n') {
    answer += c;
  }
  return answer == "y" || answer == "Y" || answer == "yes";
}

/// A link that couldn't be followed is refused at once.
expected<void> check_link(const import_plan& plan, const settings& config) {
  if (!plan.collected.record.linked) {
    return {};
  }
  if (plan.collected.from_input) {
    return fail(errc::invalid_argument, "standard input can't be linked to; leave out --link");
  }
  auto allowed = trusted_by(config, plan.who);
  for (const auto& source : plan.collected.record.files) {
    auto text = source.scope == host_scope::project
                    ? read_any_file(source.path, largest_host_file)
                    : read_trusted_file(source.path, largest_host_file, allowed);
    bool optional = source.switches && source.digest.empty();
    if (!text && !(optional && text.error().code == errc::not_found)) {
      return fail(text.error().code,
                  fmt::format("\"{}\" can't be linked to: {}. Leave out --link to copy it",
                              source.path, text.error().message));
    }
  }
  return {};
}

int refuse(const std::string& why) {
  complain(why);
  return 1;
}

} // namespace

int import_servers(const collected_import& collected, const command_line& line,
                   const settings& config, const account& who, const std::string& executable,
                   int in, int out) {
  auto name = import_file_name(collected.record.host, collected.record.project);
  import_plan plan{collected, who, config.state_dir + "/" + name, document_of(collected), {}, {}};
  std::error_code ignored;
  plan.replaces = std::filesystem::exists(plan.target, ignored);
  plan.catalogue = preview(plan, config, executable);
  plan.source = find_source(plan.catalogue, plan.target);
  if (auto linkable = check_link(plan, config); !linkable) {
    return refuse(linkable.error().message);
  }
  if (plan.document.contains("mcpServers")) {
    plan.document["mcpServers"] = without_itself(plan.document["mcpServers"], *plan.source);
  }
  if (int failed = write_answer(out, printable(plan_text(plan)), 0); failed != 0) {
    return failed;
  }
  if (line.dry_run) {
    return 0;
  }
  if (plan.source->servers.empty()) {
    return refuse("there is nothing to take over; nothing was written");
  }
  if (!line.yes && (collected.from_input || ::isatty(in) == 0)) {
    return refuse("nothing was written: there is no terminal to ask on; give --yes to agree");
  }
  if (!line.yes && !confirmed(in)) {
    return refuse("nothing was written");
  }
  auto text = plan.document.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
  if (auto written = write_private_file(config.state_dir, name, text); !written) {
    return refuse(written.error().message);
  }
  return write_answer(out, fmt::format("Written. Remove {} to undo it.\n", plan.target), 0);
}

} // namespace bulkhead
