#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "protocol/host_config.hpp"
#include "protocol/host_variables.hpp"

namespace bulkhead {

/// One server of a host on its way into this program's format. Keys are taken from the host's entry
/// one after the other; what nobody took is judged at the end.
class host_entry {
public:
  explicit host_entry(const nlohmann::json& entry) : entry_{entry} {}

  /// The host's member, taken; null when there is none.
  const nlohmann::json& take(const char* key);

  /// Takes members that say nothing here.
  void ignore(std::initializer_list<const char*> keys);

  /// Takes a member for one of ours, as it is.
  void copy(const char* key, const char* own_key);
  void copy(const char* key) { copy(key, key); }

  /// Takes command, args and env, whatever is there of them.
  void copy_process();

  /// Takes `key`, an address, if it is there.
  void copy_address(const char* key, const char* type);

  /// Takes a number in these units as a timeout; out of range it is brought into it.
  void copy_timeout(const char* key, const char* own_key, std::chrono::milliseconds unit);

  /// The same for a value that was taken already, called `what`.
  void set_timeout(const char* what, const nlohmann::json& value, const char* own_key,
                   std::chrono::milliseconds unit);

  /// Takes lists of tools' names.
  void copy_included(const char* key);
  void copy_excluded(const char* key);

  void exclude_tool(std::string pattern);
  void set(const char* own_key, nlohmann::json value) { own_[own_key] = std::move(value); }
  /// Texts that are in our own syntax already.
  void own_variable(const std::string& name, std::string text);
  void own_header(const std::string& name, std::string text);
  void disable() { own_["disabled"] = true; }
  bool disabled() const { return own_.contains("disabled"); }

  /// A true `disabled` or false `enabled` switches the server off. One that is neither true nor
  /// false refuses it.
  void copy_switch(const char* key, bool off_value);

  /// Says why the entry can't be taken over; the first one counts.
  void refuse(std::string why);
  void remark(std::string what) { remarks_.push_back(std::move(what)); }

  /// OAuth that the host has settings for.
  void remark_oauth(const char* key);

  bool has(const char* key) const { return entry_.contains(key); }
  const nlohmann::json& own() const { return own_; }
  const nlohmann::json& original() const { return entry_; }

  /// Judges what nobody took, and translates the variables. Answers false if it was refused.
  bool finish(const variable_context& variables, host_scope scope);

  const std::string& refusal() const { return refusal_; }
  const std::vector<std::string>& remarks() const { return remarks_; }

private:
  void judge_the_rest();
  void translate(const std::string& what, nlohmann::json& value, const variable_context& variables);
  void settle_folder(const variable_context& variables, host_scope scope);
  void copy_names(const char* key, const char* own_key);

  const nlohmann::json& entry_;
  std::set<std::string> taken_;
  nlohmann::json own_ = nlohmann::json::object();
  nlohmann::json translated_ = nlohmann::json::object(); ///< env and headers that need no more
  std::string refusal_;
  std::vector<std::string> remarks_;
};

/// What a host's file is read into, and by.
struct host_reading {
  const host_reader_context& context;
  const host_file* file = nullptr; ///< the one that is being read
  host_servers result = {};
  /// Names that are switched off, or that alone are on, as files of switches say.
  std::set<std::string> switched_off = {};
  std::optional<std::set<std::string>> switched_on = {};
  /// Tools that are denied, by server; `*` for all of them.
  std::map<std::string, std::vector<std::string>> denied = {};

  variable_context variables(variable_syntax syntax) const {
    return {syntax,
            context.home,
            file->scope == host_scope::user ? std::string{} : context.project,
            context.environment,
            {}};
  }
  void report(std::string entry, std::string message, problem_kind kind = problem_kind::error) {
    result.problems.push_back({file->path, std::move(entry), std::move(message), kind});
  }

  /// Reads each member of `servers` by `read_one`, which takes what it knows.
  void read_servers(const char* what, const nlohmann::json& servers, variable_syntax syntax,
                    const std::function<void(host_entry&)>& read_one);

  /// Adds one server that was read.
  void add(const std::string& name, host_entry& entry, const variable_context& variables);
};

/// The readers of each host's document.
void read_claude_code(host_reading& reading, const nlohmann::json& document);
void read_claude_switches(host_reading& reading, const nlohmann::json& document);
void read_claude_desktop(host_reading& reading, const nlohmann::json& document);
void read_cursor(host_reading& reading, const nlohmann::json& document);
void read_vscode(host_reading& reading, const nlohmann::json& document);
void read_windsurf(host_reading& reading, const nlohmann::json& document);
void read_gemini(host_reading& reading, const nlohmann::json& document);
void read_gemini_switches(host_reading& reading, const nlohmann::json& document);
void read_codex(host_reading& reading, const nlohmann::json& document);
void read_opencode(host_reading& reading, const nlohmann::json& document);
void read_zed(host_reading& reading, const nlohmann::json& document);
void read_goose(host_reading& reading, const nlohmann::json& document);

/// The member of an object, or null when there is none or it is no object.
const nlohmann::json& member_of(const nlohmann::json& object, const char* key);

/// The value, or an empty object in place of anything else.
const nlohmann::json& object_of(const nlohmann::json& value);

/// The strings of an array; others are left out.
std::vector<std::string> texts_of(const nlohmann::json& array);

} // namespace bulkhead
