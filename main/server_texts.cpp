#include "main/server_texts.hpp"

#include <fmt/format.h>

#include "protocol/masked_arguments.hpp"

namespace bulkhead {

namespace {

using nlohmann::json;

/// A command as it would be typed; for people, not for a shell.
std::string command_text(std::string text, const std::vector<std::string>& shown_args) {
  for (const auto& argument : shown_args) {
    bool plain = !argument.empty() && argument.find_first_of(" \t\n\"'") == std::string::npos;
    text += plain ? " " + argument
                  : " " + json(argument).dump(-1, ' ', false, json::error_handler_t::replace);
  }
  return text;
}

std::string process_line(std::string command, const std::vector<std::string>& shown_args) {
  return fmt::format("    starts:    {}\n", command_text(std::move(command), shown_args));
}

std::string address_line(std::string_view shown_url, bool sse) {
  return fmt::format("    at:        {}{}\n", shown_url, sse ? " (server-sent events)" : "");
}

} // namespace

std::string entry_text(const server_entry& entry) {
  return entry.transport == server_transport::stdio
             ? process_line(entry.command, entry.shown_args)
             : address_line(entry.shown_url, entry.transport == server_transport::sse);
}

std::string unread_entry_text(const json& entry) {
  auto text_of = [&](const char* key) {
    auto found = entry.find(key);
    return found != entry.end() && found->is_string() ? found->get<std::string>() : std::string{};
  };
  if (entry.contains("url")) {
    return address_line(mask_arguments({text_of("url")}).front(), text_of("type") == "sse");
  }
  std::vector<std::string> args;
  if (auto found = entry.find("args"); found != entry.end() && found->is_array()) {
    for (const auto& each : *found) {
      args.push_back(each.is_string() ? each.get<std::string>() : std::string{});
    }
  }
  return process_line(text_of("command"), mask_arguments(args));
}

} // namespace bulkhead
