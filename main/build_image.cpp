#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <vector>

#include <fmt/format.h>

#include <embedded/image.hpp>

#include "main/account.hpp"
#include "main/commands.hpp"
#include "protocol/image_profiles.hpp"

namespace bulkhead {

namespace {

int refuse(const std::string& what, const std::string& cause) {
  complain(fmt::format("{}: {}", what, cause));
  return 1;
}

/// Starts the builder and removes its folder ($0) when it is done, however it ends.
constexpr const char* run_and_clean = R"(trap 'rm -rf -- "$0"' EXIT; bash "$@")";

std::vector<std::string> builder_arguments(const command_line& line, const settings& config,
                                           const std::string& script) {
  auto folder = script.substr(0, script.rfind('/'));
  // A profile has a tag of its own; without one, the image that runs take is made.
  const auto* profile = find_image_profile(line.profile);
  auto tag = profile != nullptr ? std::string{profile->reference} : config.image;
  profile = profile_of_image(tag);
  std::vector<std::string> argv{"bash", "-c", run_and_clean, folder, script, "--tag", tag};
  if (profile != nullptr) {
    argv.insert(argv.end(), {"--profile", std::string{profile->name}});
  }
  if (!config.runtime.empty()) {
    // Without an engine's commands sandboxes still have the image from podman's store.
    argv.insert(argv.end(), {"--runtime", config.runtime == oci_driver ? std::string{"podman"}
                                                                       : config.runtime});
  }
  if (line.rebuild) {
    argv.emplace_back("--force");
  }
  if (line.pull) {
    argv.emplace_back("--pull");
    if (!line.image_reference.empty()) {
      argv.push_back(line.image_reference);
    }
  }
  return argv;
}

} // namespace

int build_image(const command_line& line, const settings& config, const std::string& runtime_dir) {
  // One of its own, since two builds may go on at once.
  auto folder = runtime_dir + "/image-build.XXXXXX";
  if (::mkdtemp(folder.data()) == nullptr) {
    return refuse("make folder \"" + folder + "\"", strerror(errno));
  }
  for (const auto& file : embedded::image()) {
    auto path = fmt::format("{}/{}", folder, file.name);
    std::ofstream script{path, std::ios::binary | std::ios::trunc};
    script << file.content;
    script.close();
    if (!script) {
      return refuse("write \"" + path + "\"", strerror(errno));
    }
  }
  auto argv = builder_arguments(line, config, folder + "/build-image.sh");
  std::vector<char*> pointers;
  pointers.reserve(argv.size() + 1);
  for (auto& argument : argv) {
    pointers.push_back(argument.data());
  }
  pointers.push_back(nullptr);
  // The builder takes this process over: its progress, status and Ctrl-C are then the user's.
  ::execv("/bin/bash", pointers.data());
  return refuse("start /bin/bash", strerror(errno));
}

} // namespace bulkhead
