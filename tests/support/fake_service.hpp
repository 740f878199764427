#pragma once

#include <deque>
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "tests/support/fake_engine.hpp"

namespace bulkhead::testing {

/// podman's REST service as the driver sees it. Its containers are the fake engine's as well, so
/// that commands find them, too.
class fake_service {
public:
  fake_service(fake_engine& engine, std::shared_ptr<fake_cgroups> cgroups)
      : engine_{engine}, cgroups_{std::move(cgroups)} {}

  /// Puts itself in front of the engine behind the script; after the engine.
  void serve(command_script& script);

  /// The service's process ends, and with it all connections.
  void die(command_script& script);

  bool users_own = false;  ///< it listens without having been started
  bool users_works = true; ///< else it can't start a container
  bool starts = true;      ///< else its process ends at once
  bool hangs = false;      ///< requests reach their deadlines
  /// Refuses requests whose method and target hold the key, so many times.
  std::map<std::string, int> refusals;
  std::string state = "exited"; ///< of containers whose state is asked for
  bool out_of_memory = false;

  child_id process = 0;                         ///< 0: none was started
  std::map<std::string, nlohmann::json> bodies; ///< of `create`, by name

private:
  expected<socket_answer> answer(command_script& script, const socket_request& request);
  socket_answer create(const std::string& body);
  socket_answer start(command_script& script, const std::string& name);
  socket_answer remove(command_script& script, const std::string& name);
  void probe(const scripted_child& child, const std::string& name, const std::string& line);

  std::vector<std::string> cgroups_of(command_script& script, const std::string& cid) const;

  fake_engine& engine_;
  std::shared_ptr<fake_cgroups> cgroups_;
};

/// The name in a target like "/v4.3.1/libpod/containers/NAME/start".
std::string container_in(const std::string& target);

} // namespace bulkhead::testing
