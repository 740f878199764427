#include "protocol/config_keys.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "protocol/ascii.hpp"
#include "protocol/edit_distance.hpp"

namespace bulkhead {

namespace {

using names = std::vector<std::string_view>;

constexpr std::size_t longest_shown = 128;
/// Keys that a remark lists before it says how many more there are.
constexpr std::size_t keys_listed = 8;

const names top_keys = {"mcpServers", "servers", "policy", "import"};
/// Of files that are also some other program's.
const names foreign_top_keys = {"$schema", "inputs",  "globalShortcut", "preferences",
                                "theme",   "version", "name",           "description"};

const names entry_keys = {"command",      "args",         "env",           "cwd",
                          "disabled",     "description",  "startTimeout",  "callTimeout",
                          "type",         "url",          "headers",       "httpUrl",
                          "serverUrl",    "envFile",      "envFileSha256", "envVars",
                          "includeTools", "excludeTools", "roots",         "maxConcurrentCalls",
                          "oauth"};
/// Without these an entry isn't what its author meant to start.
const names vital_keys = {"command", "args", "env", "cwd", "disabled", "url", "headers"};
const names foreign_entry_keys = {"autoApprove", "alwaysAllow", "autoStart",    "fromGalleryId",
                                  "gallery",     "icon",        "trust",        "transport",
                                  "name",        "title",       "version",      "note",
                                  "comment",     "dev",         "transportType"};

struct synonym {
  std::string_view key;
  std::string_view meant;
};
constexpr std::array synonyms = {
    synonym{"cmd", "command"},     synonym{"arguments", "args"},
    synonym{"environment", "env"}, synonym{"workingDirectory", "cwd"},
    synonym{"workdir", "cwd"},     synonym{"enabled", "disabled"},
    synonym{"enable", "disabled"},
};

/// Is `name`, in lower case, about what may be used?
bool mentions_rights(std::string_view name) {
  static const names words = {"policy",    "allow",     "deny",      "denied",
                              "block",     "exclude",   "forbid",    "permission",
                              "whitelist", "blacklist", "filter",    "disabledtool",
                              "readonly",  "read-only", "read_only", "confirm"};
  return std::any_of(words.begin(), words.end(),
                     [&](auto word) { return name.find(word) != std::string_view::npos; });
}

bool holds(const names& all, std::string_view key) {
  return std::find(all.begin(), all.end(), key) != all.end();
}

/// The one of `known` that `key` was probably meant to be.
std::string_view meant_by(std::string_view key, const names& known) {
  if (key.size() > longest_shown) {
    return {};
  }
  for (auto each : known) {
    if (lower_case(each) == lower_case(key)) {
      return each;
    }
  }
  return closest_name(key, known);
}

std::string list_keys(const names& keys) {
  std::string text;
  for (std::size_t i = 0; i < std::min(keys.size(), keys_listed); ++i) {
    text += fmt::format("{}\"{}\"", i == 0 ? "" : ", ", shown_name(keys[i]));
  }
  return keys.size() > keys_listed ? fmt::format("{} and {} more", text, keys.size() - keys_listed)
                                   : text;
}

} // namespace

std::string shown_name(std::string_view name) {
  std::string result;
  for (char c : name.substr(0, longest_shown)) {
    result += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '?' : c;
  }
  return name.size() > longest_shown ? result + "…" : result;
}

std::string did_you_mean(std::string_view likely) {
  return likely.empty() ? std::string{} : fmt::format("; did you mean \"{}\"?", likely);
}

bool belongs_in_policy(std::string_view key) {
  static const names policy_keys = {"allow",   "deny",     "denied",      "readOnly",
                                    "confirm", "limits",   "callsPerRun", "callsPerMinute",
                                    "perTool", "readonly", "allowed"};
  return holds(policy_keys, key);
}

top_key classify_top_key(std::string_view key) {
  if (holds(top_keys, key)) {
    return top_key::read;
  }
  if (holds(foreign_top_keys, key) || key.size() > longest_shown) {
    return top_key::other;
  }
  // Generous, since taking a deny list for something else would allow what it forbids.
  auto name = lower_case(key);
  bool near = edit_distance(name, "policy", 2) <= 2 || edit_distance(name, "policies", 2) <= 2;
  // "policy" can be written with letters that only look like these.
  bool plain = std::all_of(key.begin(), key.end(), [](char c) { return c > 0x20 && c < 0x7f; });
  return near || !plain || name == "rules" || belongs_in_policy(key) || mentions_rights(name)
             ? top_key::policy_mistake
             : top_key::other;
}

key_findings judge_top_keys(const std::vector<std::string>& keys) {
  key_findings result;
  names strange;
  for (const auto& key : keys) {
    if (holds(foreign_top_keys, key)) {
      continue;
    }
    // "servers" alone would be near to many a word.
    if (auto likely = meant_by(key, {"mcpServers"}); !likely.empty()) {
      result.mistakes.push_back(
          fmt::format("unknown key \"{}\"{}", shown_name(key), did_you_mean(likely)));
    } else {
      strange.push_back(key);
    }
  }
  if (!strange.empty()) {
    result.remark =
        fmt::format("nothing reads {}; mcpServers and policy are read", list_keys(strange));
  }
  return result;
}

key_findings judge_entry_keys(const std::vector<std::string>& keys) {
  key_findings result;
  names strange;
  for (const auto& key : keys) {
    if (holds(entry_keys, key) || holds(foreign_entry_keys, key) || restricts_tools(key)) {
      continue;
    }
    auto known = std::find_if(synonyms.begin(), synonyms.end(),
                              [&](const synonym& each) { return each.key == key; });
    auto likely = known != synonyms.end() ? known->meant : meant_by(key, entry_keys);
    if (likely.empty()) {
      strange.push_back(key);
      continue;
    }
    result.mistakes.push_back(
        fmt::format("unknown key \"{}\"{}", shown_name(key), did_you_mean(likely)));
    result.vital = result.vital || holds(vital_keys, likely);
  }
  if (!strange.empty()) {
    result.remark = fmt::format("nothing reads {}{}", list_keys(strange),
                                holds(strange, "timeout")
                                    ? "; did you mean \"callTimeout\" or \"startTimeout\", seconds?"
                                    : "");
  }
  return result;
}

bool restricts_tools(std::string_view key) {
  if (holds(foreign_entry_keys, key) || key == "includeTools" || key == "excludeTools") {
    return false;
  }
  auto name = lower_case(key);
  return name.find("tool") != std::string::npos || mentions_rights(name);
}

} // namespace bulkhead
