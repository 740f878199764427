#include "protocol/oauth_challenge.hpp"

#include <algorithm>

#include "protocol/ascii.hpp"
#include "protocol/http_token.hpp"

namespace bulkhead {

namespace {

constexpr std::size_t most_scopes = 64;
constexpr std::size_t longest_scope = 512;

bool is_visible(char c) {
  return c >= 0x20 && c < 0x7f;
}

/// Reads a header's value from left to right.
class challenge_reader {
public:
  explicit challenge_reader(std::string_view text) : rest_{text} {}

  bool done() const { return rest_.empty(); }

  void skip_spaces() {
    drop_while([](char c) { return c == ' ' || c == '\t'; });
  }

  /// Skips white space and the commas that part challenges and parameters.
  void skip_separators() {
    drop_while([](char c) { return c == ' ' || c == '\t' || c == ','; });
  }

  std::string_view token() { return drop_while(is_token_char); }

  /// What an authentication scheme may have instead of parameters (RFC 9110, 11.2).
  void skip_token68() {
    drop_while([](char c) { return is_token_char(c) || c == '/' || c == '='; });
  }

  /// A parameter's value, quoted or not; nothing when the quotes don't end.
  std::optional<std::string> value() {
    if (!take('"')) {
      return std::string{token()};
    }
    std::string result;
    for (;;) {
      if (take('"')) {
        return result;
      }
      take('\\');
      if (rest_.empty()) {
        return {};
      }
      result += is_visible(rest_.front()) ? rest_.front() : '?';
      rest_.remove_prefix(1);
    }
  }

  bool take(char c) {
    if (rest_.empty() || rest_.front() != c) {
      return false;
    }
    rest_.remove_prefix(1);
    return true;
  }

  /// Is a name with a value next, and not a scheme or what may follow one instead (which can end in
  /// equals signs)?
  bool at_parameter() const {
    auto is_space = [](char c) { return c == ' ' || c == '\t'; };
    auto name = std::find_if_not(rest_.begin(), rest_.end(), is_token_char);
    auto equals = std::find_if_not(name, rest_.end(), is_space);
    if (name == rest_.begin() || equals == rest_.end() || *equals != '=') {
      return false;
    }
    auto value = std::find_if_not(equals + 1, rest_.end(), is_space);
    return value != rest_.end() && (*value == '"' || is_token_char(*value));
  }

private:
  template <class Kind>
  std::string_view drop_while(Kind kind) {
    auto end = std::find_if_not(rest_.begin(), rest_.end(), kind);
    auto taken = rest_.substr(0, static_cast<std::size_t>(end - rest_.begin()));
    rest_.remove_prefix(taken.size());
    return taken;
  }

  std::string_view rest_;
};

void set(bearer_challenge& result, std::string_view name, std::string value) {
  auto key = lower_case(name);
  if (key == "resource_metadata") {
    result.resource_metadata = std::move(value);
  } else if (key == "scope") {
    result.scopes = read_scopes(value);
  } else if (key == "error") {
    result.error = std::move(value);
  }
}

/// The parameters up to the next scheme; nothing when they can't be read.
std::optional<bearer_challenge> read_parameters(challenge_reader& reader) {
  bearer_challenge result;
  reader.skip_separators();
  while (reader.at_parameter()) {
    auto name = reader.token();
    reader.skip_spaces();
    reader.take('=');
    reader.skip_spaces();
    auto value = reader.value();
    if (!value) {
      return {};
    }
    set(result, name, std::move(*value));
    reader.skip_separators();
  }
  return result;
}

} // namespace

std::optional<bearer_challenge> read_bearer_challenge(std::string_view header) {
  challenge_reader reader{header.substr(0, longest_challenge)};
  reader.skip_separators();
  while (!reader.done()) {
    auto scheme = lower_case(reader.token());
    if (scheme.empty()) {
      return {};
    }
    reader.skip_spaces();
    if (scheme != "bearer" && !reader.at_parameter()) {
      reader.skip_token68();
    }
    auto parameters = read_parameters(reader);
    if (!parameters || scheme == "bearer") {
      return parameters;
    }
  }
  return {};
}

std::vector<std::string> read_scopes(std::string_view text) {
  std::vector<std::string> result;
  while (!text.empty() && result.size() < most_scopes) {
    auto scope = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(scope.size() + 1, text.size()));
    auto sound = std::all_of(scope.begin(), scope.end(),
                             [](char c) { return c > 0x20 && c < 0x7f && c != '"' && c != '\\'; });
    if (!scope.empty() && sound && scope.size() <= longest_scope &&
        std::find(result.begin(), result.end(), scope) == result.end()) {
      result.emplace_back(scope);
    }
  }
  return result;
}

std::string scope_text(const std::vector<std::string>& scopes) {
  std::string result;
  for (const auto& scope : scopes) {
    result += (result.empty() ? "" : " ") + scope;
  }
  return result;
}

std::vector<std::string> joined_scopes(std::vector<std::string> first,
                                       const std::vector<std::string>& second) {
  for (const auto& scope : second) {
    if (std::find(first.begin(), first.end(), scope) == first.end()) {
      first.push_back(scope);
    }
  }
  return first;
}

} // namespace bulkhead
