#include "actors/artifact_folder.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "actors/artifact_files.hpp"

namespace bulkhead {

namespace {

constexpr const char* quota_cause =
    "the room for what runs leave is used up (MCP_BRIDGE_ARTIFACTS)";

std::string stream_name(stream_id stream) {
  return std::string{to_string(stream)};
}

std::string about_name(const std::string& file) {
  return file + ".json";
}

void remove_item(int folder, const std::string& file) {
  ::unlinkat(folder, file.c_str(), 0);
  ::unlinkat(folder, about_name(file).c_str(), 0);
}

std::uint64_t item_size(int folder, const std::string& file) {
  return size_of(folder, file) + size_of(folder, about_name(file));
}

} // namespace

expected<artifact_folder::guard> artifact_folder::lock() const {
  auto root = open_artifact_root(rules_.root, true);
  if (!root) {
    return tl::unexpected{root.error()};
  }
  return guard::take(std::move(*root));
}

// -- what a run leaves ---------------------------------------------------------------------------

expected<void> artifact_folder::make_run_folder(const stored_run& run, open_run& of, guard& held) {
  of.owner = run.owner;
  if (of.folder) {
    return {};
  }
  if (::mkdirat(held.root(), run.handle.c_str(), 0700) != 0) {
    return fail(errc::unavailable, std::strerror(errno));
  }
  of.folder = open_folder(held.root(), run.handle);
  if (!of.folder) {
    return fail(errc::unavailable, std::strerror(errno));
  }
  // Where folders can't be locked, other processes take the run for one that is over, no more.
  ::flock(of.folder.get(), LOCK_EX | LOCK_NB);
  return {};
}

expected<void> artifact_folder::start(const stored_run& run, open_run& of, stream_id stream,
                                      guard& held) {
  auto made = make_run_folder(run, of, held);
  auto& to = of.streams[stream];
  if (!made || to.data) {
    return made;
  }
  if (!make_room(held, stream_about_size, 1)) {
    return fail(errc::limit, quota_cause);
  }
  const auto name = stream_name(stream);
  held.add(stream_about_size, 1);
  auto data = make_file(of.folder.get(), name);
  auto about = data ? make_file(of.folder.get(), about_name(name)) : std::move(data);
  int cause = 0;
  if (about &&
      write_at(about->get(), std::string(stream_about_size, ' '), 0, cause) != stream_about_size) {
    about = fail(errc::unavailable, std::strerror(cause));
  }
  if (!about) {
    remove_item(of.folder.get(), name);
    held.subtract({stream_about_size, 1});
    return tl::unexpected{about.error()};
  }
  to.data = std::move(*data);
  to.about = std::move(*about);
  return {};
}

void artifact_folder::write_some(open_run& of, stream_file& to, std::string_view bytes,
                                 guard& held) {
  auto& kept = to.kept;
  const auto asked = bytes.size();
  bytes = bytes.substr(0, rules_.spill - std::min(of.spilled, rules_.spill));
  if (bytes.size() < asked) {
    kept.why = fmt::format("over {} bytes of one run's output (MCP_BRIDGE_SPILL)", rules_.spill);
  }
  if (!make_room(held, bytes.size(), 0)) {
    bytes = bytes.substr(0, rules_.quota - std::min(held.now().bytes, rules_.quota));
    kept.why = quota_cause;
  }
  int cause = 0;
  held.add(bytes.size(), 0);
  const auto written = write_at(to.data.get(), bytes, kept.bytes, cause);
  if (written < bytes.size()) {
    kept.why = std::strerror(cause);
    held.subtract({bytes.size() - written, 0});
  }
  kept.bytes += written;
  of.spilled += written;
}

kept_bytes artifact_folder::append(const stored_run& run, stream_id stream,
                                   std::string_view bytes) {
  if (!is_handle(run.handle) || run.owner.empty()) {
    return {0, {}, "its handle is unusable"};
  }
  auto& of = open_[run.handle];
  auto& to = of.streams[stream];
  if (!to.kept.why.empty()) {
    return to.kept;
  }
  if (rules_.spill == 0 || rules_.quota == 0) {
    to.kept.why = rules_.spill == 0 ? "MCP_BRIDGE_SPILL is 0" : "MCP_BRIDGE_ARTIFACTS is 0";
    return to.kept;
  }
  auto held = lock();
  if (!held) {
    to.kept.why = held.error().message;
    return to.kept;
  }
  if (auto started = start(run, of, stream, *held); !started) {
    to.kept.why = started.error().message;
    return to.kept;
  }
  write_some(of, to, bytes, *held);
  if (to.kept.bytes > 0) {
    to.kept.file = fmt::format("{}/{}/{}", rules_.root, run.handle, to_string(stream));
  }
  return to.kept;
}

expected<void> artifact_folder::write_artifact(const open_run& of, const std::string& file,
                                               const guest_artifact& artifact,
                                               const std::string& about) const {
  const auto folder = of.folder.get();
  for (const auto& [name, content] :
       {std::pair<std::string, std::string_view>{file, artifact.bytes},
        {about_name(file), about}}) {
    auto made = make_file(folder, name);
    int cause = 0;
    if (made && write_at(made->get(), content, 0, cause) < content.size()) {
      made = fail(errc::unavailable, std::strerror(cause));
    }
    if (!made) {
      remove_item(folder, file);
      return tl::unexpected{made.error()};
    }
  }
  return {};
}

expected<std::string> artifact_folder::save(const stored_run& run, const guest_artifact& artifact) {
  if (!is_handle(run.handle) || run.owner.empty()) {
    return fail(errc::invalid_argument, "its handle is unusable");
  }
  if (rules_.quota == 0) {
    return fail(errc::limit, "MCP_BRIDGE_ARTIFACTS is 0");
  }
  auto held = lock();
  if (!held) {
    return tl::unexpected{held.error()};
  }
  auto& of = open_[run.handle];
  if (auto made = make_run_folder(run, of, *held); !made) {
    return tl::unexpected{made.error()};
  }
  const auto about = encode_about({run.owner, artifact.name, artifact.mime_type, 0, {}});
  const auto size = artifact.bytes.size() + about.size();
  if (!make_room(*held, size, 1)) {
    return fail(errc::limit, quota_cause);
  }
  const auto file = std::to_string(++of.serial);
  held->add(size, 1);
  if (auto written = write_artifact(of, file, artifact, about); !written) {
    held->subtract({size, 1});
    return tl::unexpected{written.error()};
  }
  auto& current = of.artifacts[artifact.name];
  if (!current.empty()) {
    held->subtract({item_size(of.folder.get(), current), 1});
    remove_item(of.folder.get(), current);
  }
  current = file;
  return fmt::format("{}/{}/{}", rules_.root, run.handle, file);
}

expected<void> artifact_folder::seal(const stored_run& run, std::uint64_t out_total,
                                     std::uint64_t err_total) {
  auto found = open_.find(run.handle);
  if (found == open_.end()) {
    return {};
  }
  auto of = std::move(found->second);
  open_.erase(found);
  if (!of.folder) {
    return {};
  }
  auto held = lock();
  if (!held) {
    return tl::unexpected{held.error()};
  }
  expected<void> result;
  bool empty = of.artifacts.empty();
  for (auto& [stream, to] : of.streams) {
    auto about = encode_about({of.owner,
                               {},
                               "text/plain; charset=utf-8",
                               stream == stream_id::out ? out_total : err_total,
                               to.kept.why});
    about.resize(stream_about_size, ' ');
    int cause = 0;
    if (to.kept.bytes > 0 && write_at(to.about.get(), about, 0, cause) == about.size()) {
      empty = false;
      continue;
    }
    if (cause != 0) {
      result = fail(errc::unavailable, std::strerror(cause));
    }
    if (to.data) {
      held->subtract({item_size(of.folder.get(), stream_name(stream)), 1});
      remove_item(of.folder.get(), stream_name(stream));
    }
  }
  if (empty) {
    ::unlinkat(held->root(), run.handle.c_str(), AT_REMOVEDIR);
  }
  return result;
}

void artifact_folder::discard(const std::string& handle) {
  auto found = open_.find(handle);
  if (found == open_.end()) {
    return;
  }
  const bool made = static_cast<bool>(found->second.folder);
  open_.erase(found);
  if (!made) {
    return;
  }
  if (auto held = lock()) {
    held->subtract(remove_run(held->root(), handle));
  }
}

// -- the room there is ---------------------------------------------------------------------------

bool artifact_folder::make_room(guard& held, std::uint64_t bytes, std::uint64_t items) const {
  auto fits = [&](std::uint64_t spare_bytes, std::uint64_t spare_items) {
    return held.now().bytes + bytes + spare_bytes <= rules_.quota &&
           held.now().items + items + spare_items <= rules_.count;
  };
  if (bytes > rules_.quota) {
    return false;
  }
  if (fits(0, 0)) {
    return true;
  }
  // A little more than is needed, so that a run that writes on doesn't look for each piece.
  for (const auto& each : run_folders(held.root())) {
    if (fits(rules_.quota / 32, rules_.count / 32)) {
      break;
    }
    held.subtract(remove_run(held.root(), each.handle));
  }
  return fits(0, 0);
}

expected<void> artifact_folder::sweep() {
  auto root = open_artifact_root(rules_.root, false);
  if (!root) {
    return root.error().code == errc::not_found ? expected<void>{} : tl::unexpected{root.error()};
  }
  auto held = lock();
  if (!held) {
    return tl::unexpected{held.error()};
  }
  artifact_usage all;
  for (const auto& each : run_folders(held->root())) {
    const auto left = sweep_run(held->root(), each);
    all.bytes += left.bytes;
    all.items += left.items;
  }
  held->set(all);
  make_room(*held, 0, 0);
  return {};
}

bool artifact_folder::too_old(std::int64_t changed) const {
  const auto now = std::chrono::nanoseconds{rules_.now().time_since_epoch()};
  return now.count() - changed > std::chrono::nanoseconds{rules_.age}.count();
}

/// What is left of a run after what is too old or unfinished has gone.
artifact_usage artifact_folder::sweep_run(int root, const run_folder& which) const {
  auto folder = open_folder(root, which.handle);
  if (!folder) {
    return {};
  }
  if (::flock(folder.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    return measure_run(folder.get());
  }
  const bool old = too_old(which.changed);
  for_each_entry(folder.get(), [&](const std::string& name) {
    const auto file = is_about(name) ? name.substr(0, name.size() - 5) : name;
    struct stat info {};
    if (old || !read_about(folder.get(), file) ||
        ::fstatat(folder.get(), file.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) {
      remove_item(folder.get(), file);
    }
  });
  if (::unlinkat(root, which.handle.c_str(), AT_REMOVEDIR) == 0) {
    return {};
  }
  return measure_run(folder.get());
}

artifact_usage artifact_folder::remove_run(int root, const std::string& handle) {
  auto folder = open_folder(root, handle);
  if (!folder || (::flock(folder.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)) {
    return {};
  }
  const auto gone = measure_run(folder.get());
  for_each_entry(folder.get(),
                 [&](const std::string& name) { ::unlinkat(folder.get(), name.c_str(), 0); });
  ::unlinkat(root, handle.c_str(), AT_REMOVEDIR);
  return gone;
}

} // namespace bulkhead
