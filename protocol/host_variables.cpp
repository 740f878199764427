#include "protocol/host_variables.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "protocol/config_keys.hpp"
#include "protocol/variable_expansion.hpp"

namespace bulkhead {

namespace {

bool is_word_byte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/// Walks a host's text and writes ours.
class translation {
public:
  translation(std::string_view text, const variable_context& context)
      : rest_{text}, context_{context} {}

  expected<own_text> run() {
    while (!rest_.empty() && failure_.empty()) {
      step();
    }
    flush();
    if (!failure_.empty()) {
      return fail(errc::invalid_argument, failure_);
    }
    return std::move(result_);
  }

private:
  void step();
  void flush();
  void literal(std::string_view text) { literal_ += text; }
  void take(std::size_t count) {
    literal(rest_.substr(0, count));
    rest_.remove_prefix(count);
  }
  void refuse(std::string message) {
    if (failure_.empty()) {
      failure_ = std::move(message);
    }
  }
  void remark(std::string message) {
    if (std::find(result_.remarks.begin(), result_.remarks.end(), message) ==
        result_.remarks.end()) {
      result_.remarks.push_back(std::move(message));
    }
  }

  void reference(std::string_view name, std::optional<std::string_view> fallback);
  void kept_reference(std::string_view name, std::string_view written);
  void braced_with_default(std::string_view inside, std::string_view written);
  void editor_variable(std::string_view inside, std::string_view written);
  void own_variable(std::string_view name, std::string_view written);
  void opencode_variable(std::string_view inside);

  std::string_view rest_;
  const variable_context& context_;
  std::string literal_; ///< what was read and is no variable
  own_text result_;
  std::string failure_;
};

/// Writes what was literal so that it stays so.
void translation::flush() {
  for (auto at = literal_.find("${"); at != std::string::npos; at = literal_.find("${", at + 3)) {
    literal_.insert(at, 1, '$');
  }
  result_.text += std::exchange(literal_, {});
}

void translation::reference(std::string_view name, std::optional<std::string_view> fallback) {
  if (!literal_.empty() && literal_.back() == '$') {
    refuse(fmt::format("has a $ right before the variable {}, which can't be written here",
                       shown_name(name)));
    return;
  }
  flush();
  result_.text +=
      fallback ? fmt::format("${{{}-{}}}", name, *fallback) : fmt::format("${{{}}}", name);
}

/// A variable that, unset, stays as it is `written`.
void translation::kept_reference(std::string_view name, std::string_view written) {
  if (!is_variable_name(name)) {
    literal(written); // nothing can have that name
    return;
  }
  if (!context_.environment(name)) {
    remark(fmt::format("{} isn't set, so \"{}\" is passed as it stands", name, written));
  }
  std::string fallback{written};
  if (auto at = fallback.find("${"); at != std::string::npos) {
    fallback.insert(at, 1, '$');
  }
  reference(name, fallback);
}

/// `NAME` or `NAME:-default`.
void translation::braced_with_default(std::string_view inside, std::string_view written) {
  auto separator = inside.find(":-");
  if (separator == std::string_view::npos) {
    kept_reference(inside, written);
    return;
  }
  auto name = inside.substr(0, separator);
  auto fallback = inside.substr(separator + 2);
  if (fallback.find("${") != std::string_view::npos) {
    refuse(fmt::format("has a default for {} that holds another ${{…}}, which isn't supported",
                       shown_name(name)));
  } else if (!is_variable_name(name)) {
    literal(fallback);
  } else {
    reference(name, fallback);
  }
}

/// What VS Code and its like put between the braces.
void translation::editor_variable(std::string_view inside, std::string_view written) {
  static constexpr std::array<std::string_view, 10> unavailable = {
      "input:",       "command:",
      "config:",      "file",
      "relativeFile", "extensionInstallFolder:",
      "lineNumber",   "selectedText",
      "execPath",     "defaultBuildTask"};
  if (inside.starts_with("env:")) {
    auto name = inside.substr(4);
    if (!is_variable_name(name)) {
      return; // never set, and nothing stands for it
    }
    if (!context_.environment(name)) {
      remark(fmt::format("{} isn't set, so nothing stands in its place", name));
    }
    reference(name, "");
  } else if (inside == "userHome") {
    literal(context_.home);
  } else if (inside == "workspaceFolder" || inside == "workspaceRoot" || inside == "cwd" ||
             inside.starts_with("workspaceFolder:") || inside == "workspaceFolderBasename") {
    if (context_.project.empty()) {
      refuse(fmt::format("refers to {}, but is in no project's file", shown_name(written)));
      return;
    }
    std::string_view folder = context_.project;
    literal(inside == "workspaceFolderBasename" ? folder.substr(folder.rfind('/') + 1) : folder);
  } else if (inside == "pathSeparator" || inside == "/") {
    literal("/");
  } else if (inside.starts_with("input:")) {
    refuse(fmt::format("asks for {} when it starts, which can't be had here; write ${{env:NAME}} "
                       "and set that variable",
                       shown_name(written)));
  } else if (std::any_of(unavailable.begin(), unavailable.end(),
                         [&](auto start) { return inside.starts_with(start); })) {
    refuse(fmt::format("refers to {}, which can't be had here", shown_name(written)));
  } else {
    remark(fmt::format("\"{}\" is passed as it stands; ${{env:…}} would name a variable",
                       shown_name(written)));
    literal(written);
  }
}

void translation::own_variable(std::string_view name, std::string_view written) {
  auto found = context_.own.find(std::string{name});
  if (found == context_.own.end()) {
    literal(written);
  } else if (found->second) {
    literal(*found->second);
  } else {
    reference(name, std::nullopt);
  }
}

void translation::opencode_variable(std::string_view inside) {
  if (inside.starts_with("file:")) {
    refuse("takes a value from a file by {file:…}, which isn't supported; set a variable and write "
           "{env:NAME}");
    return;
  }
  auto name = inside.substr(4);
  if (!is_variable_name(name)) {
    return;
  }
  if (!context_.environment(name)) {
    remark(fmt::format("{} isn't set, so nothing stands in its place", name));
  }
  reference(name, "");
}

void translation::step() {
  using enum variable_syntax;
  auto syntax = context_.syntax;
  if (syntax == opencode && (rest_.starts_with("{env:") || rest_.starts_with("{file:"))) {
    auto end = rest_.find('}');
    if (end != std::string_view::npos && end > rest_.find(':') + 1) {
      opencode_variable(rest_.substr(1, end - 1));
      rest_.remove_prefix(end + 1);
      return;
    }
  }
  bool dollar = rest_.front() == '$' && syntax != none && syntax != opencode;
  if (dollar && rest_.substr(1).starts_with('{')) {
    auto end = rest_.find('}');
    if (end != std::string_view::npos && end > 2) {
      auto written = rest_.substr(0, end + 1);
      auto inside = rest_.substr(2, end - 2);
      rest_.remove_prefix(end + 1);
      if (syntax == editor) {
        editor_variable(inside, written);
      } else if (syntax == goose) {
        own_variable(inside, written);
      } else {
        braced_with_default(inside, written);
      }
      return;
    }
  }
  if (dollar && (syntax == gemini || syntax == goose)) {
    auto end = std::find_if_not(rest_.begin() + 1, rest_.end(), is_word_byte);
    auto written = rest_.substr(0, static_cast<std::size_t>(end - rest_.begin()));
    if (written.size() > 1) {
      rest_.remove_prefix(written.size());
      if (syntax == goose) {
        own_variable(written.substr(1), written);
      } else {
        kept_reference(written.substr(1), written);
      }
      return;
    }
  }
  take(1);
}

} // namespace

expected<own_text> to_own_syntax(std::string_view text, const variable_context& context) {
  return translation{text, context}.run();
}

} // namespace bulkhead
