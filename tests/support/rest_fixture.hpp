#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/driver_fixture.hpp"
#include "tests/support/fake_service.hpp"

namespace bulkhead::testing {

/// A driver with podman's REST service.
struct rest_fixture : driver_fixture {
  rest_fixture() {
    service.serve(*script);
    env.config->driver = "rest";
  }

  std::size_t services() const {
    return static_cast<std::size_t>(
        std::count_if(script->children.begin(), script->children.end(), [](const auto& child) {
          return value_of(child.spec().argv, "system") == "service";
        }));
  }

  /// The process of the latest service.
  const process_spec& service_spec() const {
    CAF_REQUIRE(service.process != 0);
    return script->children[service.process - 1].spec();
  }

  std::size_t requests(std::string_view part) const {
    return static_cast<std::size_t>(
        std::count_if(script->requests.begin(), script->requests.end(),
                      [&](const auto& line) { return mentions(line, part); }));
  }

  /// An owner of containers that notes their ends.
  child_owner_actor watcher() {
    return sys.spawn([this](child_owner_actor::pointer) -> child_owner_actor::behavior_type {
      return {[](const child_output&) {}, [](const child_written&) {},
              [this](const child_exited& exit) { ends.push_back(exit); }};
    });
  }

  std::vector<child_exited> ends;
  fake_service service{engine, cgroups};
};

/// A socket of this account's that nobody in this process listens on; the script answers for it.
struct users_socket_fixture : rest_fixture {
  users_socket_fixture() {
    // Root's driver would be rootful.
    host.uid = ::geteuid() != 0 ? ::geteuid() : host.uid;
    service.users_own = true;
    std::filesystem::create_directories(root + "/xdg/podman");
    path = root + "/xdg/podman/podman.sock";
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    CAF_REQUIRE(path.size() < sizeof address.sun_path);
    path.copy(address.sun_path, path.size());
    descriptor = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CAF_REQUIRE(::bind(descriptor, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
    CAF_REQUIRE(::chown(path.c_str(), host.uid, static_cast<gid_t>(-1)) == 0);
  }
  ~users_socket_fixture() { ::close(descriptor); }

  std::string path;
  int descriptor = -1;
};

} // namespace bulkhead::testing
