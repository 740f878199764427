#include "actors/oci_namespaces.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include "actors/engine_errors.hpp"

namespace bulkhead {

using namespace std::chrono_literals;

namespace {

constexpr auto command_budget = 20s;

/// Places for temporary mounts and the like, see hier(7).
constexpr std::array places = {"/mnt", "/media", "/srv", "/opt"};

/// Run in the account's user namespace with the store, its place and the lock. `read` waits until
/// the mount is made, or has failed; the holder itself keeps nothing of ours open.
constexpr const char* hold_script = R"({
  unshare --mount sh -c '
    mount --bind "$1" "$2" && echo $$ && exec flock --shared "$3" true >/dev/null 2>&1
  ' sh "$@" </dev/null &
} | {
  read -r pid && echo "$pid"
})";

bool lies_in(const std::string& path, const std::string& folder) {
  return path == folder || path.starts_with(folder + "/");
}

bool holder_lives(const driver_context& context) {
  const auto& holder = context.namespaces;
  return holder.pid > 0 && process_alive(context.host, holder.pid, holder.start_time);
}

task<expected<void>> start_holder(driver_context& context, const runtime_facts& facts) {
  auto lock = fmt::format("{}/{}/lock", context.env->runtime_dir, context.env->instance);
  std::vector<std::string> argv = {
      facts.engine.binary, "unshare",        "sh", "-c", hold_script, "sh",
      facts.oci->store,    facts.oci->place, lock};
  auto result = co_await context.run(std::move(argv), command_budget);
  if (!result) {
    co_return tl::unexpected{
        error{errc::unavailable, "open the account's namespaces: " + result.error().message}};
  }
  const auto& text = result->out;
  std::int32_t pid = 0;
  auto [end, bad] = std::from_chars(text.data(), text.data() + text.size(), pid);
  if (result->exit_code != 0 || bad != std::errc{}) {
    co_return fail(
        errc::unavailable,
        fmt::format("open the account's namespaces: {}; unshare, mount, flock and nsenter have to "
                    "be there (Debian: apt install util-linux mount), or unset MCP_BRIDGE_RUNTIME",
                    engine_complaint(result->err)));
  }
  context.namespaces.pid = pid;
  context.namespaces.start_time = process_start_time(context.host, pid).value_or(0);
  co_return expected<void>{};
}

} // namespace

task<expected<void>> hold_namespaces(driver_context& context, const runtime_facts& facts) {
  auto& holder = context.namespaces;
  if (!facts.engine.rootless || holder_lives(context)) {
    co_return expected<void>{};
  }
  if (holder.starting) {
    completion<expected<void>> shared{
        [&holder](auto done) { holder.waiting.push_back(std::move(done)); }};
    auto result = co_await shared;
    co_return result;
  }
  holder.starting = true;
  auto started = co_await start_holder(context, facts);
  holder.starting = false;
  for (auto& each : std::exchange(holder.waiting, {})) {
    each(started);
  }
  co_return started;
}

bool missed_the_holder(const driver_context& context, std::string_view complaint) {
  constexpr std::string_view start = "nsenter: cannot open /proc/";
  auto of_this_one = fmt::format("{}{}/", start, context.namespaces.pid);
  return complaint.starts_with(start) &&
         !(complaint.starts_with(of_this_one) && holder_lives(context));
}

std::vector<std::string> within_namespaces(const driver_context& context,
                                           const runtime_facts& facts,
                                           std::vector<std::string> argv) {
  if (!facts.engine.rootless) {
    return argv;
  }
  std::vector<std::string> result = {"nsenter", "--target", std::to_string(context.namespaces.pid),
                                     "--user",  "--mount",  "--preserve-credentials"};
  result.insert(result.end(), argv.begin(), argv.end());
  return result;
}

std::string mount_place(const driver_context& context, const std::vector<std::string>& in_use) {
  for (const std::string place : places) {
    std::error_code ignored;
    auto needed = [&](const std::string& path) { return lies_in(path, place); };
    bool free = !needed(context.env->runtime_dir) && !needed(context.env->config->state_dir) &&
                std::none_of(in_use.begin(), in_use.end(), needed);
    if (free && std::filesystem::is_directory(place, ignored)) {
      return place;
    }
  }
  return {};
}

} // namespace bulkhead
