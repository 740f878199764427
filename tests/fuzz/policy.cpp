#include "protocol/policy.hpp"

#include <vector>

#include <nlohmann/json.hpp>

#include "protocol/json_scan.hpp"
#include "protocol/policy_reader.hpp"
#include "protocol/tool_documents.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace bulkhead::fuzz {

namespace {

using rules = ::bulkhead::policy;

/// What `glob_match` is to do, written down plainly.
bool plain_match(std::string_view glob, std::string_view text) {
  std::vector<bool> row(text.size() + 1);
  row[0] = true;
  for (char c : glob) {
    std::vector<bool> next(text.size() + 1);
    next[0] = c == '*' && row[0];
    for (std::size_t i = 1; i <= text.size(); ++i) {
      next[i] = c == '*' ? row[i] || next[i - 1] : row[i - 1] && (c == '?' || c == text[i - 1]);
    }
    row = std::move(next);
  }
  return row[text.size()];
}

/// The policy that a file has; a text that is no JSON is none.
rules read_rules(std::string_view text, const char* file) {
  rules result;
  if (!scan_json(text, {text.size(), 16, 1000})) {
    return result;
  }
  auto value = nlohmann::json::parse(text, nullptr, false);
  if (value.is_discarded()) {
    return result;
  }
  bool closes = false;
  for (const auto& finding : read_policy(value, file, result)) {
    require(is_utf8(finding.message), "a finding is UTF-8");
    require_message(finding.message);
    closes |= finding.how == policy_finding::weight::closes;
  }
  if (closes) {
    result.closed = "the policy isn't understood";
  }
  return result;
}

/// What is asked of a policy.
struct question {
  std::string server;
  tool_document tool;
};

struct answers {
  policy_verdict server;
  policy_verdict name;
  policy_verdict tool;
};

answers ask(const rules& of, const question& what) {
  return {allows_server(of, what.server), allows_tool_name(of, what.server, what.tool.name),
          allows_tool(of, what.server, what.tool)};
}

void check_alone(const rules& of, const question& what) {
  auto [server, name, tool] = ask(of, what);
  require(of.closed.empty() || (!server.allowed && !name.allowed && !tool.allowed),
          "a closed policy allows nothing");
  require(name.allowed || !tool.allowed, "a tool that is denied by name is denied");
  require(server.allowed || !name.allowed, "a server that is denied has no tools");
  for (const auto& verdict : {server, name, tool}) {
    require(verdict.allowed || !verdict.rule.empty(), "a denial names its rule");
    require(verdict.allowed || !verdict.confirm, "nobody is asked about what is denied");
  }
  for (const auto& line : describe(of)) {
    require(!line.empty() && is_utf8(line), "a rule is described");
  }
}

/// What several files say adds up.
void check_together(const rules& one, const rules& both, const question& what) {
  auto before = ask(one, what);
  auto after = ask(both, what);
  require(before.server.allowed || !after.server.allowed, "no file opens a server that is shut");
  require(before.tool.allowed || !after.tool.allowed, "no file allows a tool that is denied");
  require(!before.tool.confirm || !after.tool.allowed || after.tool.confirm,
          "no file takes a question back");
}

void check_narrowed(const rules& one, const rules& other, const question& what) {
  run_rights rights{one, {what.server}};
  auto before = rights.tool(what.server, what.tool);
  rights.narrow(other);
  auto after = rights.tool(what.server, what.tool);
  require(before.allowed || !after.allowed, "narrowing allows nothing");
  require(allows_tool(other, what.server, what.tool).allowed || !after.allowed,
          "what narrows has its say");
  require(what.server == "another" || !rights.tool("another", what.tool).allowed,
          "a run has only the servers that it asked for");
}

} // namespace

/// Lines: two policies, a server, a tool, its annotations; a glob.
void policy_target(std::string_view input) {
  const auto first = take_until(input, '\n');
  const auto second = take_until(input, '\n');
  question what;
  what.server = take_until(input, '\n');
  what.tool.name = take_until(input, '\n');
  what.tool.annotations = take_until(input, '\n');
  const auto one = read_rules(first, "/one");
  const auto other = read_rules(second, "/two");
  check_alone(one, what);
  check_alone(other, what);
  check_narrowed(one, other, what);
  rules both = one;
  if (other.closed.empty() && scan_json(second, {second.size(), 16, 1000})) {
    read_policy(nlohmann::json::parse(second, nullptr, false), "/two", both);
    check_together(one, both, what);
    check_together(other, both, what);
  }
  require(glob_match(input, what.server) == plain_match(input, what.server) &&
              glob_match(input, what.tool.name) == plain_match(input, what.tool.name),
          "a glob matches what it is to match");
}

} // namespace bulkhead::fuzz
