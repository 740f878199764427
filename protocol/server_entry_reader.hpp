#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "protocol/server_config.hpp"

namespace bulkhead {

/// Reads one entry of `mcpServers`. Its texts never hold a value of the entry that could be secret.
class server_entry_reader {
public:
  server_entry_reader(const nlohmann::json& entry, const environment_lookup& environment,
                      std::string_view home, const file_lookup& files)
      : entry_(entry), environment_(environment), home_(home), files_(files) {}

  /// The entry without name, alias and source. Errors: invalid_argument for what is wrong with the
  /// first unusable member.
  expected<server_entry> read();

private:
  void check_disabled();
  server_transport read_transport();
  void read_address(server_entry& target);
  std::map<std::string, std::string> read_headers();
  server_oauth read_oauth();
  const nlohmann::json* member(const char* key) const;
  void refuse(std::string message);
  std::string plain_text(const char* key);
  /// `what` names the member in error texts, e.g. `args[2]`.
  std::string expanded(const std::string& what, const nlohmann::json& value);
  std::string read_command();
  std::vector<std::string> read_args();
  std::vector<std::string> plain_args() const;
  std::map<std::string, std::string> read_env();
  void add_handed_on(std::map<std::string, std::string>& target);
  void add_env_file(std::map<std::string, std::string>& target);
  void check_filters();
  std::vector<std::string> read_roots();
  void read_most_calls(std::uint32_t& target);
  std::vector<std::string> text_list(const char* key);
  std::string read_cwd();
  void read_timeout(const char* key, std::chrono::milliseconds& target);

  const nlohmann::json& entry_;
  const environment_lookup& environment_;
  std::string_view home_;
  const file_lookup& files_;
  std::string failure_; ///< the first one; empty when there is none
};

} // namespace bulkhead
