#include "protocol/policy_reader.hpp"

#include <algorithm>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "protocol/config_keys.hpp"
#include "protocol/edit_distance.hpp"

namespace bulkhead {

namespace {

using nlohmann::json;
using weight = policy_finding::weight;

constexpr std::size_t longest_pattern = 512;
/// The calls of a minute are remembered one by one.
constexpr std::uint32_t largest_limit = 100'000;
constexpr std::string_view destructive = "destructive";

/// What keeps a pattern from meaning what its author probably meant; empty if nothing.
std::string pattern_fault(std::string_view pattern) {
  auto slash = pattern.find('/');
  auto is_outer_space = [](std::string_view part) {
    return !part.empty() && (part.front() == ' ' || part.back() == ' ');
  };
  auto server = pattern.substr(0, slash);
  auto tool = slash == std::string_view::npos ? std::string_view{"*"} : pattern.substr(slash + 1);
  if (server.empty() || tool.empty()) {
    return "has nothing on one side of the slash";
  }
  if (is_outer_space(server) || is_outer_space(tool)) {
    return "has a space at an end of a name";
  }
  if (std::any_of(pattern.begin(), pattern.end(), [](char c) {
        return static_cast<unsigned char>(c) < 0x20 || c == 0x7f ||
               std::string_view{"[]{}!"}.find(c) != std::string_view::npos;
      })) {
    return "has a character that patterns give no meaning";
  }
  return {};
}

class reader {
public:
  reader(const std::string& file, policy& rules) : file_{file}, rules_{rules} {}

  void read(const json& value);
  std::vector<policy_finding> findings() && { return std::move(findings_); }

private:
  void close(std::string message) {
    findings_.push_back({weight::closes, file_, std::move(message)});
  }
  void unknown(std::string_view where, const std::string& key,
               const std::vector<std::string_view>& known, std::string_view list) {
    close(fmt::format("{} has the unknown key \"{}\"{}; it may have {}", where, shown_name(key),
                      did_you_mean(closest_name(key, known)), list));
  }
  void read_allow(const json& value);
  void read_read_only(const json& value);
  void read_confirm(const json& value);
  void read_limits(const json& value);
  void read_tool_limits(const json& value);
  void read_patterns(const json& value, std::string_view key, std::string_view instead,
                     std::vector<policy_pattern>& target);
  bool sound_pattern(const std::string& pattern, std::string_view key);
  std::optional<policy_limit> limit(const json& value, const std::string& key);

  const std::string& file_;
  policy& rules_;
  std::vector<policy_finding> findings_;
};

void reader::read(const json& value) {
  if (!value.is_object()) {
    close("policy must be an object of the lists allow and deny");
    return;
  }
  for (const auto& [key, member] : value.items()) {
    if (key == "allow") {
      read_allow(member);
    } else if (key == "deny") {
      read_patterns(member, key, {}, rules_.deny);
    } else if (key == "readOnly") {
      read_read_only(member);
    } else if (key == "confirm") {
      read_confirm(member);
    } else if (key == "limits") {
      read_limits(member);
    } else {
      unknown("policy", key, {"allow", "deny", "readOnly", "confirm", "limits"},
              "allow, deny, readOnly, confirm and limits");
    }
  }
}

void reader::read_allow(const json& value) {
  rules_.allow_files.push_back(file_);
  read_patterns(value, "allow", {}, rules_.allow);
  if (value.is_array() && value.empty()) {
    findings_.push_back(
        {weight::remark, file_,
         "policy.allow is empty and allows nothing; leave it out to allow every server"});
  }
}

void reader::read_read_only(const json& value) {
  if (value == json(true)) {
    rules_.read_only.emplace_back("*", file_);
  } else if (value != json(false)) {
    read_patterns(value, "readOnly", "true, false or ", rules_.read_only);
  }
}

void reader::read_confirm(const json& value) {
  auto is_it = [](const json& each) { return each == json(destructive); };
  if (is_it(value) || (value.is_array() && std::any_of(value.begin(), value.end(), is_it))) {
    rules_.confirm_destructive = file_;
  }
  if (is_it(value)) {
    return;
  }
  auto patterns = value;
  if (patterns.is_array()) {
    patterns.erase(std::remove_if(patterns.begin(), patterns.end(), is_it), patterns.end());
  }
  read_patterns(patterns, "confirm", "\"destructive\" or ", rules_.confirm);
}

void reader::read_limits(const json& value) {
  if (!value.is_object()) {
    close("policy.limits must be an object of callsPerRun, callsPerMinute and perTool");
    return;
  }
  for (const auto& [key, member] : value.items()) {
    if (key == "callsPerRun" || key == "callsPerMinute") {
      auto& target = key == "callsPerRun" ? rules_.calls_per_run : rules_.calls_per_minute;
      if (auto read = limit(member, key)) {
        target.push_back(std::move(*read));
      }
    } else if (key == "perTool") {
      read_tool_limits(member);
    } else {
      unknown("policy.limits", key, {"callsPerRun", "callsPerMinute", "perTool"},
              "callsPerRun, callsPerMinute and perTool");
    }
  }
}

void reader::read_tool_limits(const json& value) {
  if (!value.is_object()) {
    close("policy.limits.perTool must be an object such as {\"server/tool*\": 5}");
    return;
  }
  for (const auto& [pattern, most] : value.items()) {
    auto read = limit(most, fmt::format("perTool, \"{}\",", shown_name(pattern)));
    if (sound_pattern(pattern, "limits.perTool") && read) {
      read->pattern = pattern;
      rules_.calls_per_tool.push_back(std::move(*read));
    }
  }
}

std::optional<policy_limit> reader::limit(const json& value, const std::string& key) {
  if (!value.is_number_unsigned() || value.get<std::uint64_t>() > largest_limit) {
    close(fmt::format("policy.limits: {} must be a whole number from 0 to {}", key, largest_limit));
    return std::nullopt;
  }
  return policy_limit{value.get<std::uint32_t>(), file_, {}};
}

bool reader::sound_pattern(const std::string& pattern, std::string_view key) {
  auto fault =
      pattern.size() > longest_pattern ? std::string{"is too long"} : pattern_fault(pattern);
  if (!fault.empty()) {
    close(fmt::format("policy.{}: \"{}\" {}; patterns are \"server\" or \"server/tool\", with * "
                      "and ? for any characters",
                      key, shown_name(pattern), fault));
  }
  return fault.empty();
}

void reader::read_patterns(const json& value, std::string_view key, std::string_view instead,
                           std::vector<policy_pattern>& target) {
  auto usable = [](const json& pattern) {
    return pattern.is_string() && !pattern.get_ref<const std::string&>().empty();
  };
  if (!value.is_array() || !std::all_of(value.begin(), value.end(), usable)) {
    close(fmt::format("policy.{} must be {}an array of patterns such as \"server\" or "
                      "\"server/tool*\"",
                      key, instead));
    return;
  }
  for (const auto& pattern : value) {
    if (sound_pattern(pattern.get_ref<const std::string&>(), key)) {
      target.emplace_back(pattern.get<std::string>(), file_);
    }
  }
}

} // namespace

std::vector<policy_finding> read_policy(const json& value, const std::string& file, policy& rules) {
  reader from{file, rules};
  from.read(value);
  return std::move(from).findings();
}

std::vector<policy_finding> check_patterns(const policy& rules,
                                           const std::vector<std::string_view>& servers) {
  std::vector<policy_finding> findings;
  auto check = [&](std::string_view key, const std::string& pattern, const std::string& file,
                   weight how) {
    if (std::none_of(servers.begin(), servers.end(),
                     [&](auto name) { return names_server(pattern, name); })) {
      auto server = std::string_view(pattern).substr(0, pattern.find('/'));
      findings.push_back(
          {how, file,
           fmt::format("policy.{}: \"{}\" matches no configured server{}", key, shown_name(pattern),
                       did_you_mean(closest_name(server, servers)))});
    }
  };
  auto check_all = [&](std::string_view key, const std::vector<policy_pattern>& patterns,
                       weight how) {
    for (const auto& each : patterns) {
      // What speaks of every server may stand there before there is any.
      if (each.text.starts_with("*") && key != "deny" && key != "allow") {
        continue;
      }
      check(key, each.text, each.file, how);
    }
  };
  check_all("allow", rules.allow, weight::remark);
  check_all("deny", rules.deny, weight::error);
  check_all("readOnly", rules.read_only, weight::error);
  check_all("confirm", rules.confirm, weight::error);
  for (const auto& each : rules.calls_per_tool) {
    check("limits.perTool", each.pattern, each.file, weight::error);
  }
  return findings;
}

} // namespace bulkhead
