#include "actors/oci_images.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ctime>
#include <filesystem>

#include <fmt/format.h>

#include "actors/container_launch.hpp"
#include "actors/engine_errors.hpp"
#include "actors/runtime_cache.hpp"

namespace bulkhead {

using namespace std::chrono_literals;

namespace {

/// Two gigabytes take some 20 s.
constexpr auto unpack_budget = 300s;
constexpr auto removal_budget = 60s;
constexpr std::size_t id_length = 64; ///< of a SHA-256 in hex
constexpr std::string_view lock_suffix = ".lock";
/// An image that was used so recently, in seconds, may be wanted again: two may take turns.
constexpr std::time_t recent = 24 * 60 * 60;

/// Run as the account: $1 podman, $2 the image, $3 a name, $4 our label, $5 the folder to make, $6
/// the script below, from $7 on how to become root over the account's ids.
constexpr const char* unpack_script = R"(
engine=$1 image=$2 name=$3 label=$4 folder=$5 script=$6; shift 6
"$engine" create --pull=never --network none --name "$name" --label "$label" "$image" true >/dev/null || exit
"$engine" export "$name" | "$@" sh -c "$script" sh "$folder" "$#"
status=$?
"$engine" rm -f "$name" >/dev/null && exit "$status"
)";

/// Run as root over the account's ids. In a container root is the account's first sub-uid, which is
/// 1 here: every owner moves up by one, the highest first, so that none moves twice. That clears
/// setuid bits, too.
constexpr const char* extract_script = R"sh(
set -e
mkdir "$1"; cd "$1"
tar -x -p --numeric-owner --exclude='dev/?*' --exclude='./dev/?*' -f -
chmod 0755 .
[ "$2" -gt 0 ] || exit 0
find . -printf '%U\n' | sort -rnu | while read -r id; do
  find . -uid "$id" -exec chown -h "$((id+1))" {} +
done
find . -printf '%G\n' | sort -rnu | while read -r id; do
  find . -gid "$id" -exec chgrp -h "$((id+1))" {} +
done
)sh";

bool is_image_name(std::string_view text) {
  return text.size() == id_length &&
         text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

bool folder_exists(const std::string& path) {
  struct stat info {};
  return ::lstat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

/// The folders down to the store. What is unpacked is reached through a mount of the store alone,
/// so only that one is open to others.
expected<void> make_store(const std::string& store) {
  std::error_code failure;
  std::filesystem::create_directories(std::filesystem::path{store}.parent_path(), failure);
  if (::mkdir(store.c_str(), 0711) != 0 && errno != EEXIST) {
    return fail(errc::unavailable, fmt::format("make folder \"{}\": {}; let this account write "
                                               "there, or choose another XDG_CACHE_HOME",
                                               store, std::strerror(errno)));
  }
  struct stat info {};
  bool ours =
      ::lstat(store.c_str(), &info) == 0 && S_ISDIR(info.st_mode) && info.st_uid == ::geteuid();
  if (!ours || ::chmod(store.c_str(), 0711) != 0) {
    return fail(errc::unavailable,
                fmt::format("use \"{}\": it isn't a folder of this account; remove it", store));
  }
  return {};
}

/// Null when another process has the file locked in a way that `how` (see flock(2)) excludes, or it
/// can't be opened.
file_lock lock_file(const std::string& path, int how) {
  auto lock = std::make_shared<io::descriptor>(
      ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  return lock->get() >= 0 && ::flock(lock->get(), how | LOCK_NB) == 0 ? lock : nullptr;
}

class unpacking {
public:
  unpacking(driver_context& context, const runtime_facts& facts)
      : context_{context}, facts_{facts}, store_{image_store(*context.env)} {
    const auto& id = facts.report.image_id;
    name_ = id.substr(id.find(':') + 1); // "sha256:…" or the digits alone
  }

  task<expected<std::string>> run() {
    if (!is_image_name(name_)) {
      co_return fail(errc::unavailable,
                     fmt::format("unpack the image: podman calls it \"{}\", which is no id",
                                 facts_.report.image_id));
    }
    if (auto made = make_store(store_); !made) {
      co_return tl::unexpected{made.error()};
    }
    for (auto waited = 0ms; waited < unpack_budget; waited += 100ms) {
      if (keep()) {
        co_return name_;
      }
      if (auto alone = lock_file(store_ + "/unpack.lock", LOCK_EX)) {
        auto unpacked = co_await unpack();
        if (!unpacked) {
          co_return tl::unexpected{unpacked.error()};
        }
        co_await remove_others();
        continue;
      }
      // Another process is at it.
      co_await context_.pause(100ms);
    }
    co_return fail(errc::unavailable,
                   fmt::format("unpack the image into \"{}\": another process of Bulkhead has been "
                               "at it for {} s",
                               store_, unpack_budget.count()));
  }

private:
  /// True when the image is there and can't go away any more.
  bool keep() {
    auto lock = lock_file(store_ + "/" + name_ + std::string{lock_suffix}, LOCK_SH);
    if (!lock || !folder_exists(store_ + "/" + name_)) {
      return false;
    }
    ::futimens(lock->get(), nullptr);
    context_.image_locks[name_] = std::move(lock);
    return true;
  }

  std::vector<std::string> as_root_over_ids(std::vector<std::string> argv) const {
    if (facts_.engine.rootless) {
      argv.insert(argv.begin(), {facts_.engine.binary, "unshare"});
    }
    return argv;
  }

  task<expected<void>> unpack() {
    if (folder_exists(store_ + "/" + name_)) {
      co_return expected<void>{};
    }
    context_.env->log->info("unpacking the image into \"{}\"", store_);
    auto container = container_name(context_.env->new_handle());
    auto beside = store_ + "/." + container;
    std::vector<std::string> argv = {"sh",
                                     "-c",
                                     unpack_script,
                                     "sh",
                                     facts_.engine.binary,
                                     context_.env->config->image,
                                     container,
                                     fmt::format("{}={}", owner_label, context_.env->instance),
                                     beside,
                                     extract_script};
    auto root = as_root_over_ids({});
    argv.insert(argv.end(), root.begin(), root.end());
    auto result = co_await context_.run(std::move(argv), unpack_budget);
    bool good = result && result->exit_code == 0;
    // Whoever sees the folder sees all of it.
    if (good && ::rename(beside.c_str(), (store_ + "/" + name_).c_str()) == 0) {
      co_return expected<void>{};
    }
    auto cause = errno;
    co_await remove_folder(beside);
    auto why = !result ? result.error().message
               : good  ? std::string{std::strerror(cause)}
                       : engine_complaint(result->err);
    co_return fail(errc::unavailable,
                   fmt::format("unpack the image into \"{}\": {}; it takes the image's size there; "
                               "tar and find have to be installed",
                               store_, why));
  }

  task<void> remove_folder(std::string path) {
    auto argv = as_root_over_ids({"rm", "-rf", "--", path});
    auto result = co_await context_.run(std::move(argv), removal_budget);
    if (!result || result->exit_code != 0) {
      context_.env->log->warn("remove \"{}\": {}", path,
                              result ? result->err : result.error().message);
    }
  }

  static bool used_recently(const std::string& lock) {
    struct stat info {};
    return ::stat(lock.c_str(), &info) == 0 && info.st_mtim.tv_sec + recent > std::time(nullptr);
  }

  /// Images of other ids that no process uses or has used recently, and what was left half
  /// unpacked. Whoever comes here unpacks alone.
  task<void> remove_others() {
    std::vector<std::string> names;
    std::error_code failure;
    using walk = std::filesystem::directory_iterator;
    for (walk entry{store_, failure}; !failure && entry != walk{}; entry.increment(failure)) {
      names.push_back(entry->path().filename().string());
    }
    for (const auto& name : names) {
      auto path = store_ + "/" + name;
      if (name.starts_with('.')) {
        co_await remove_folder(path);
      } else if (is_image_name(name) && name != name_) {
        auto lock = path + std::string{lock_suffix};
        auto unused = used_recently(lock) ? nullptr : lock_file(lock, LOCK_EX);
        if (unused) {
          co_await remove_folder(path);
          ::unlink(lock.c_str());
        }
      }
    }
  }

  driver_context& context_;
  const runtime_facts& facts_;
  std::string store_;
  std::string name_;
};

} // namespace

std::string image_store(const environment& env) {
  return cache_folder(env) + "/rootfs";
}

task<expected<std::string>> unpack_image(driver_context& context, const runtime_facts& facts) {
  unpacking work{context, facts};
  auto result = co_await work.run();
  co_return result;
}

} // namespace bulkhead
