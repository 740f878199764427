#include "actors/approval_store.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <thread>
#include <utility>

#include <caf/all.hpp>
#include <fmt/format.h>

#include "actors/errors.hpp"
#include "actors/trusted_file.hpp"
#include "actors/unique_descriptor.hpp"

namespace bulkhead {

using namespace std::chrono_literals;

namespace {

constexpr std::size_t most_bytes = 4 * mebibyte;
/// Another process changes the file within milliseconds.
constexpr auto lock_patience = 2s;
constexpr auto lock_interval = 10ms;

tl::unexpected<error> failed(std::string_view what, const std::string& path) {
  return fail(errc::unavailable, fmt::format("{} \"{}\": {}", what, path, std::strerror(errno)));
}

/// Held until it is closed.
expected<unique_descriptor> locked(const std::string& path) {
  unique_descriptor file{::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600)};
  if (!file) {
    return failed("open", path);
  }
  auto until = std::chrono::steady_clock::now() + lock_patience;
  while (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK || std::chrono::steady_clock::now() >= until) {
      return failed("lock", path);
    }
    std::this_thread::sleep_for(lock_interval);
  }
  return file;
}

/// Puts `text` in the place of the file in one go, and on the disk.
expected<void> replace_file(const std::string& path, std::string_view text) {
  auto made = path + ".new";
  unique_descriptor file{
      ::open(made.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600)};
  if (!file) {
    return failed("write", made);
  }
  for (auto left = text; !left.empty();) {
    auto count = ::write(file.get(), left.data(), left.size());
    if (count < 0 && errno == EINTR) {
      continue;
    }
    if (count <= 0) {
      return failed("write", made);
    }
    left.remove_prefix(static_cast<std::size_t>(count));
  }
  if (::fsync(file.get()) != 0 || std::rename(made.c_str(), path.c_str()) != 0) {
    return failed("write", path);
  }
  auto folder = std::filesystem::path{path}.parent_path();
  unique_descriptor parent{::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  if (!parent || ::fsync(parent.get()) != 0) {
    return failed("write", path);
  }
  return {};
}

} // namespace

std::string approvals_path(const settings& config) {
  return config.state_dir + "/tool-approvals";
}

expected<std::vector<tool_approval>> read_approvals(const std::string& path) {
  auto guests = (std::filesystem::path{path}.parent_path() / "user_tools").string();
  auto text = read_trusted_file(path, most_bytes, trust{::geteuid(), {guests}});
  if (!text) {
    return text.error().code == errc::not_found
               ? expected<std::vector<tool_approval>>{}
               : fail(text.error().code, fmt::format("\"{}\" {}", path, text.error().message));
  }
  auto approvals = parse_approvals(*text);
  if (!approvals) {
    return fail(approvals.error().code,
                fmt::format("\"{}\" {}; mend it, or remove it and approve again", path,
                            approvals.error().message));
  }
  return approvals;
}

expected<void>
change_approvals(const std::string& path,
                 const std::function<void(std::vector<tool_approval>& approvals)>& change) {
  std::error_code ignored;
  std::filesystem::create_directories(std::filesystem::path{path}.parent_path(), ignored);
  auto lock = locked(path + ".lock");
  if (!lock) {
    return tl::unexpected{lock.error()};
  }
  auto approvals = read_approvals(path);
  if (!approvals) {
    return tl::unexpected{approvals.error()};
  }
  change(*approvals);
  return replace_file(path, encode_approvals(*approvals));
}

approval_store_actor::behavior_type approval_store_state::make_behavior() {
  return {
      [this](read_atom, const tool_identity& what) -> caf::result<approval_state> {
        auto approvals = read_approvals(approvals_path(*env->config));
        return approvals ? caf::result<approval_state>{state_of(*approvals, what)}
                         : caf::result<approval_state>{to_caf(approvals.error())};
      },
      [this](save_atom, const tool_identity& what) -> caf::result<caf::ok_atom> {
        auto at = std::chrono::duration_cast<std::chrono::milliseconds>(
            env->wall_clock().time_since_epoch());
        auto saved = change_approvals(approvals_path(*env->config), [&](auto& approvals) {
          add_approval(approvals, {what, at.count()});
        });
        return saved ? caf::result<caf::ok_atom>{caf::ok_atom::value}
                     : caf::result<caf::ok_atom>{to_caf(saved.error())};
      },
  };
}

approval_store_actor::behavior_type
approval_store(approval_store_actor::stateful_pointer<approval_store_state> self,
               environment_ptr env) {
  self->state.env = std::move(env);
  return self->state.make_behavior();
}

} // namespace bulkhead
