#include "protocol/oauth_challenge.hpp"

#include <algorithm>

#include "tests/fuzz/fuzz.hpp"

namespace bulkhead::fuzz {

namespace {

bool is_visible(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= 0x20 && c < 0x7f; });
}

void check_scopes(const std::vector<std::string>& scopes) {
  require(scopes.size() <= 64, "there are few scopes");
  for (const auto& scope : scopes) {
    require(!scope.empty() && scope.size() <= 512 && is_visible(scope) &&
                scope.find_first_of(" \"\\") == std::string::npos,
            "a scope looks like one");
  }
  require(read_scopes(scope_text(scopes)) == scopes, "scopes survive");
  require(joined_scopes(scopes, scopes) == scopes, "each scope counts once");
}

std::string in_quotes(std::string_view text) {
  std::string result = "\"";
  for (char c : text) {
    result += c == '"' || c == '\\' ? "\\" : "";
    result += c;
  }
  return result + '"';
}

void check_challenge(const bearer_challenge& challenge) {
  require(is_visible(challenge.resource_metadata) && is_visible(challenge.error),
          "a challenge is visible ASCII");
  require(challenge.resource_metadata.size() <= longest_challenge &&
              challenge.error.size() <= longest_challenge,
          "a challenge is bounded");
  check_scopes(challenge.scopes);
  auto written =
      "Basic realm=\"x\", bEaReR resource_metadata=" + in_quotes(challenge.resource_metadata) +
      " , scope=" + in_quotes(scope_text(challenge.scopes)) +
      ",error=" + in_quotes(challenge.error);
  require(written.size() > longest_challenge || read_bearer_challenge(written) == challenge,
          "a challenge that is written anew says the same");
}

} // namespace

void oauth_challenge_target(std::string_view input) {
  if (auto challenge = read_bearer_challenge(input)) {
    check_challenge(*challenge);
  }
  check_scopes(read_scopes(input));
}

} // namespace bulkhead::fuzz
