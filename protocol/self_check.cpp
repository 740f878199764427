#include <algorithm>
#include <array>
#include <initializer_list>

#include "protocol/server_config.hpp"

namespace bulkhead {

namespace {

constexpr std::string_view own_name = "bulkhead";
/// How the Python bridge is started that this program takes the place of.
constexpr std::array<std::string_view, 2> bridge_names = {"mcp-server-code-execution-mode",
                                                          "mcp_server_code_execution_mode"};
/// `sh -c "env sh -c …"` is followed so far.
constexpr int deepest_nesting = 4;

using words = std::vector<std::string>;

bool is_one_of(std::string_view word, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), word) != names.end();
}

std::string_view basename(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

/// A package's or program's bare name: `@scope/x@1.2`, `x==1.2`, `git+https://host/x.git` → `x`.
std::string_view bare_name(std::string_view word) {
  auto name = basename(word);
  name = name.substr(0, name.find_first_of("@=", 1));
  for (std::string_view ending : {".git", ".exe", ".js"}) {
    if (name.ends_with(ending)) {
      name.remove_suffix(ending.size());
    }
  }
  return name;
}

/// `NAME=value`, as env and shells take it before a program; `name==1.2` is a package's version.
bool is_assignment(std::string_view word) {
  auto equals = word.find('=');
  auto name = word.substr(0, equals);
  return equals != std::string_view::npos && equals > 0 && !word.substr(equals).starts_with("==") &&
         name.find_first_of("-/@") == std::string_view::npos;
}

/// The number or duration that timeout and nice take.
bool is_number(std::string_view word) {
  return !word.empty() && word.front() >= '0' && word.front() <= '9' &&
         word.find_first_not_of("0123456789.smhd") == std::string_view::npos;
}

/// The simple commands of a shell script, roughly: quotes are dropped, not understood.
std::vector<words> simple_commands(std::string_view script) {
  std::vector<words> commands(1);
  std::string word;
  auto end_word = [&] {
    if (!word.empty()) {
      commands.back().push_back(std::move(word));
      word.clear();
    }
  };
  for (char c : script) {
    if (c == ' ' || c == '\t') {
      end_word();
    } else if (std::string_view(";|&(){}`\n").find(c) != std::string_view::npos) {
      end_word();
      commands.emplace_back();
    } else if (c != '"' && c != '\'' && c != '\\') {
      word += c;
    }
  }
  end_word();
  return commands;
}

class self_finder {
public:
  explicit self_finder(const self_check& self) : self_(self) {}

  /// Would `command` start the program itself, directly or through the launchers it names?
  bool runs_self(const words& command, int depth) const {
    auto at = std::find_if_not(command.begin(), command.end(), is_assignment);
    if (at == command.end() || depth > deepest_nesting) {
      return false;
    }
    if (is_self(*at)) {
      return true;
    }
    auto program = basename(*at);
    words rest(at + 1, command.end());
    if (is_one_of(program, {"sh", "bash", "dash", "ash", "ksh", "zsh"})) {
      return shell_runs_self(rest, depth);
    }
    if (is_one_of(program,
                  {"env", "exec", "command", "nohup", "nice", "timeout", "setsid", "stdbuf", "sudo",
                   "npx", "npm", "pnpm", "yarn", "bunx", "bun", "uvx", "uv", "pipx"})) {
      return launcher_runs_self(rest, depth);
    }
    return false;
  }

private:
  bool is_self(std::string_view word) const {
    if (bare_name(word) == own_name || (!self_.own_path.empty() && word == self_.own_path)) {
      return true;
    }
    return self_.canonical && !self_.own_path.empty() &&
           self_.canonical(std::string(word)) == self_.own_path;
  }

  bool shell_runs_self(const words& arguments, int depth) const {
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      const auto& word = arguments[i];
      if (!word.starts_with('-')) {
        return is_self(word); // a script's file
      }
      bool inline_script = !word.starts_with("--") && word.find('c') != std::string::npos;
      if (inline_script && i + 1 < arguments.size()) {
        auto commands = simple_commands(arguments[i + 1]);
        return std::any_of(commands.begin(), commands.end(),
                           [&](const words& command) { return runs_self(command, depth + 1); });
      }
    }
    return false;
  }

  /// A launcher's options and subcommands stand before the program; what follows the program are
  /// its own arguments, where a folder may well be called like us.
  bool launcher_runs_self(const words& arguments, int depth) const {
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      const auto& word = arguments[i];
      if (is_one_of(word, {"-p", "--package", "--from", "--spec", "--with"})) {
        if (++i < arguments.size() && is_self(arguments[i])) {
          return true;
        }
      } else if (is_one_of(word, {"--directory", "--project", "--python", "-C", "-u", "-n",
                                  "--prefix"})) {
        ++i;
      } else if (word.starts_with("--package=") || word.starts_with("--from=")) {
        if (is_self(word.substr(word.find('=') + 1))) {
          return true;
        }
      } else if (!word.starts_with('-') && !is_assignment(word) && !is_number(word) &&
                 !is_one_of(word, {"run", "exec", "tool", "dlx", "x"})) {
        return runs_self(words(arguments.begin() + static_cast<std::ptrdiff_t>(i), arguments.end()),
                         depth + 1);
      }
    }
    return false;
  }

  const self_check& self_;
};

} // namespace

bool starts_self(const self_check& self, const std::string& command,
                 const std::vector<std::string>& args) {
  words all = {command};
  all.insert(all.end(), args.begin(), args.end());
  for (const auto& word : all) {
    for (auto name : bridge_names) {
      if (word.find(name) != std::string::npos) {
        return true;
      }
    }
  }
  return self_finder(self).runs_self(all, 0);
}

} // namespace bulkhead
