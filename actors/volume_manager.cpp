#include "actors/volume_manager.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include <caf/all.hpp>
#include <embedded/guest.hpp>
#include <embedded/image.hpp>
#include <fmt/format.h>

#include "actors/errors.hpp"
#include "actors/host_view.hpp"
#include "actors/shared_folder.hpp"

namespace bulkhead {

namespace {

constexpr std::string_view seccomp_file = "seccomp.json";

expected<void> make_folder(const std::string& path, mode_t mode) {
  if (::mkdir(path.c_str(), mode) != 0 && errno != EEXIST) {
    auto reason = errno;
    return fail(errc::unavailable,
                fmt::format("make folder \"{}\": {}{}", path, std::strerror(reason),
                            reason == EACCES
                                ? fmt::format("; the account that Bulkhead works as, uid {}, has "
                                              "to be able to write there: chown it, or choose "
                                              "another MCP_BRIDGE_STATE_DIR",
                                              ::geteuid())
                                : std::string{}));
  }
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0 || !S_ISDIR(info.st_mode) || info.st_uid != ::geteuid()) {
    return fail(errc::unavailable,
                fmt::format("use \"{}\": it isn't a folder of this account; move it away, or set "
                            "MCP_BRIDGE_STATE_DIR to another folder",
                            path));
  }
  return {};
}

/// A folder of ours with all above it; those made are 0700.
expected<void> make_folders(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode)) {
    return {};
  }
  auto above = std::filesystem::path{path}.parent_path().string();
  if (above.empty() || above == path) {
    return fail(errc::unavailable, fmt::format("make folder \"{}\": nothing to make it in", path));
  }
  if (auto made = make_folders(above); !made) {
    return made;
  }
  return make_folder(path, 0700);
}

expected<void> remove_tree(const std::string& path) {
  std::error_code failure;
  std::filesystem::remove_all(path, failure);
  if (failure) {
    return fail(errc::unavailable, fmt::format("remove \"{}\": {}", path, failure.message()));
  }
  return {};
}

/// Run ids become path names, so they hold nothing but what `new_handle` makes.
bool is_run_id(std::string_view id) {
  return id.size() == 32 && id.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

template <class T>
caf::result<T> answer(expected<T> result) {
  return result ? caf::result<T>{std::move(*result)} : caf::result<T>{to_caf(result.error())};
}

caf::result<caf::ok_atom> answer(const expected<void>& result) {
  return result ? caf::result<caf::ok_atom>{caf::ok_atom::value}
                : caf::result<caf::ok_atom>{to_caf(result.error())};
}

} // namespace

volume_manager_state::volume_manager_state(volume_manager_actor::pointer self) : self{self} {}

std::string volume_manager_state::root() const {
  return env->runtime_dir + "/" + env->instance;
}

expected<instance_folders> volume_manager_state::prepare() const {
  instance_folders folders{root(), root() + "/ipc", env->config->state_dir + "/user_tools",
                           fmt::format("{}/{}", root(), seccomp_file)};
  for (const auto& path : {env->runtime_dir, env->config->state_dir}) {
    if (auto made = make_folders(path); !made) {
      return tl::unexpected{made.error()};
    }
  }
  for (const auto& path : {folders.root, folders.ipc, root() + "/runs", folders.projects}) {
    if (auto made = make_folder(path, 0700); !made) {
      return tl::unexpected{made.error()};
    }
  }
  // mkdir's mode is subject to the umask; the guest, who is "others" here, must enter.
  if (::chmod(folders.ipc.c_str(), 0755) != 0) {
    return fail(errc::unavailable,
                fmt::format("open \"{}\" to the guest: {}", folders.ipc, std::strerror(errno)));
  }
  for (const auto& file : embedded::guest()) {
    auto written =
        write_small_file(fmt::format("{}/{}", folders.ipc, file.name), file.content, 0444);
    if (!written) {
      return tl::unexpected{written.error()};
    }
  }
  for (const auto& file : embedded::image()) {
    if (file.name == seccomp_file) {
      if (auto written = write_small_file(folders.seccomp_profile, file.content, 0444); !written) {
        return tl::unexpected{written.error()};
      }
      return folders;
    }
  }
  return fail(errc::internal, "this build of bulkhead has no seccomp profile in it");
}

expected<std::string> volume_manager_state::grant(std::uint32_t guest) const {
  auto folder = env->config->state_dir + "/user_tools";
  auto shared = share_folder(folder, ::geteuid(), guest);
  if (!shared) {
    return tl::unexpected{shared.error()};
  }
  if (*shared == sharing::unsupported) {
    return fmt::format(
        "the file system of \"{}\" has no ACLs, so code in a sandbox can't write to "
        "/projects: save_tool and the memory helpers will fail; put MCP_BRIDGE_STATE_DIR on "
        "ext4, xfs, btrfs or tmpfs",
        folder);
  }
  return std::string{};
}

expected<std::string> volume_manager_state::make_run_folder(const std::string& id) const {
  if (!is_run_id(id)) {
    return fail(errc::invalid_argument, "make a run's folder: its id isn't 32 hex digits");
  }
  for (const auto& path : {env->runtime_dir, root(), root() + "/runs"}) {
    if (auto made = make_folders(path); !made) {
      return tl::unexpected{made.error()};
    }
  }
  auto path = root() + "/runs/" + id;
  if (auto made = make_folder(path, 0700); !made) {
    return tl::unexpected{made.error()};
  }
  return path;
}

expected<void> volume_manager_state::discard(const std::string& id) const {
  if (!is_run_id(id)) {
    return fail(errc::invalid_argument, "remove a run's folder: its id isn't 32 hex digits");
  }
  return remove_tree(root() + "/runs/" + id);
}

expected<void> volume_manager_state::remove_all() const {
  return remove_tree(root());
}

volume_manager_actor::behavior_type volume_manager_state::make_behavior() {
  return {
      [this](prepare_atom) { return answer(prepare()); },
      [this](grant_atom, std::uint32_t guest) { return answer(grant(guest)); },
      [this](run_folder_atom, const std::string& id) { return answer(make_run_folder(id)); },
      [this](discard_atom, const std::string& id) { return answer(discard(id)); },
      [this](stop_atom) { return answer(remove_all()); },
  };
}

volume_manager_actor::behavior_type
volume_manager(volume_manager_actor::stateful_pointer<volume_manager_state> self,
               environment_ptr env) {
  self->state.env = std::move(env);
  return self->state.make_behavior();
}

} // namespace bulkhead
