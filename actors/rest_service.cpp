#include "actors/rest_service.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <filesystem>

#include <fmt/format.h>

#include "actors/container_launch.hpp"
#include "actors/container_removal.hpp"
#include "actors/engine_errors.hpp"
#include "actors/io/process_table.hpp"

namespace bulkhead {

using namespace std::chrono_literals;

namespace {

/// It takes a tenth of a second on an idle machine.
constexpr auto start_budget = 20s;
constexpr auto end_budget = 2s;
/// unix(7): a socket's path has 107 bytes at most.
constexpr std::size_t longest_socket_path = 107;
/// A monitor's note of a lack of memory comes before the end of the container's stream.
constexpr std::time_t freshness = 10;

/// Ends the service when this process ends, which the end of its stdin tells.
constexpr const char* guard_script = R"(exec 3<&0
"$@" </dev/null 3<&- &
service=$!
{ cat <&3 >/dev/null; kill -9 0; } &
wait $service)";

/// Is it a socket that this account made?
bool is_own_socket(const host_view& host, const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 && S_ISSOCK(info.st_mode) && info.st_uid == host.uid;
}

} // namespace

task<expected<rest_link>> rest_service::ensure(const runtime_facts& facts) {
  if (current_) {
    co_return *current_;
  }
  if (connecting_) {
    completion<expected<rest_link>> shared{
        [this](auto done) { waiting_.push_back(std::move(done)); }};
    auto result = co_await shared;
    co_return result;
  }
  if (ending_) {
    co_return fail(errc::unavailable, "ask podman's service: it was lost, and Bulkhead is ending");
  }
  connecting_ = true;
  auto made = co_await connect(facts);
  connecting_ = false;
  if (made) {
    made->number = ++last_number_;
    current_ = *made;
    watches_.start(watch(*made));
  }
  for (auto& each : std::exchange(waiting_, {})) {
    each(made);
  }
  co_return made;
}

task<expected<rest_link>> rest_service::connect(const runtime_facts& facts) {
  auto users = co_await find_users_own(facts);
  if (users) {
    co_return *users;
  }
  auto own = co_await start_own(facts);
  co_return own;
}

task<std::optional<rest_link>> rest_service::find_users_own(const runtime_facts& facts) {
  auto named = context_.env->variable("CONTAINER_HOST").value_or("");
  auto runtime_dir = context_.env->variable("XDG_RUNTIME_DIR").value_or("");
  std::string socket;
  if (facts.own_service) {
    co_return std::nullopt;
  }
  if (named.starts_with("unix://")) {
    socket = named.substr(std::string_view{"unix://"}.size());
  } else if (named.empty() && facts.cgroup_bases.empty() && !runtime_dir.empty()) {
    socket = runtime_dir + "/podman/podman.sock";
  }
  if (!is_own_socket(context_.host, socket)) {
    if (!named.empty()) {
      context_.env->log->warn("CONTAINER_HOST=\"{}\" isn't used: it's no unix socket of this "
                              "account's",
                              named);
    }
    co_return std::nullopt;
  }
  auto targets = co_await ping(socket, ping_budget);
  if (!targets) {
    context_.env->log->info("podman's service at \"{}\" isn't used: {}", socket,
                            targets.error().message);
    co_return std::nullopt;
  }
  rest_link link{socket, *targets, 0, {}};
  socket_request question{socket, "GET", targets->image_exists(facts.report.image_id), {}};
  auto image = co_await call(0, std::move(question), ping_budget);
  if (!image || image->status != 204) {
    context_.env->log->info("podman's service at \"{}\" isn't used: it doesn't have the image",
                            socket);
    co_return std::nullopt;
  }
  co_return link;
}

expected<process_spec> rest_service::service_process(const runtime_facts& facts,
                                                     const std::string& socket) {
  if (socket.size() > longest_socket_path) {
    return fail(errc::unavailable,
                fmt::format("start podman's service: the path of its socket, \"{}\", has over {} "
                            "bytes; set XDG_RUNTIME_DIR to a shorter folder, or "
                            "MCP_BRIDGE_DRIVER=cli",
                            socket, longest_socket_path));
  }
  if (::mkdir(folder().c_str(), 0700) != 0 && errno != EEXIST) {
    return fail(errc::unavailable,
                fmt::format("make folder \"{}\": {}", folder(), std::strerror(errno)));
  }
  if (cgroup_.own.empty()) {
    cgroup_ = cgroup_named(context_.env->instance, context_.env->new_handle());
  }
  auto cgroups = make_cgroups(*context_.host.cgroups, facts.cgroup_bases, cgroup_);
  if (!cgroups) {
    return tl::unexpected{cgroups.error()};
  }
  cgroups_ = *cgroups;
  engine_ = facts.engine;
  process_spec spec;
  spec.argv = {"/bin/sh", "-c", guard_script, "sh", engine_.binary};
  if (!engine_.oci_runtime.empty()) {
    spec.argv.insert(spec.argv.end(), {"--runtime", engine_.oci_runtime});
  }
  spec.argv.insert(spec.argv.end(), {"system", "service", "-t", "0", "unix://" + socket});
  spec.env = context_.engine_environment();
  spec.env.push_back(fmt::format("{}={}/engine", io::child_marker, context_.env->instance));
  spec.cwd = folder();
  spec.cgroups = cgroups_;
  return spec;
}

task<expected<rest_link>> rest_service::start_own(const runtime_facts& facts) {
  // A socket's name is used once: one of a service that is just ending must not be taken for it.
  auto socket = fmt::format("{}/podman-{}.sock", folder(), last_number_ + 1);
  ::unlink(socket.c_str());
  auto spec = service_process(facts, socket);
  if (!spec) {
    co_return tl::unexpected{spec.error()};
  }
  complaint_.clear();
  completion<expected<child_started>> spawned{
      [this, &spec](auto done) { context_.services.spawn(std::move(*spec), {}, std::move(done)); }};
  auto child = co_await spawned;
  if (!child) {
    co_return tl::unexpected{child.error()};
  }
  child_ = child->id;
  auto link = co_await wait_until_it_answers(socket);
  if (!link && child_ == child->id) {
    context_.services.signal(child_, SIGKILL);
  }
  co_return link;
}

task<expected<rest_link>> rest_service::wait_until_it_answers(std::string socket) {
  const auto child = child_;
  auto pause = 4ms;
  for (auto waited = 0ms; waited < start_budget; waited += pause) {
    co_await context_.pause(pause);
    pause = std::min(2 * pause, 64ms);
    if (child_ != child) {
      co_return tl::unexpected{explain_service_failure(
          "start podman's service", context_.host, "it ended: " + engine_complaint(complaint_))};
    }
    auto targets = co_await ping(socket, ping_budget);
    if (targets) {
      co_return rest_link{std::move(socket), *targets, 0, cgroups_};
    }
  }
  co_return fail(errc::unavailable,
                 fmt::format("start podman's service: it doesn't answer within {} s; set "
                             "MCP_BRIDGE_DRIVER=cli to do without it",
                             std::chrono::seconds{start_budget}.count()));
}

task<expected<rest_targets>> rest_service::ping(std::string socket,
                                                std::chrono::milliseconds budget) {
  socket_request request{std::move(socket), "GET", rest_targets::ping_target, {}};
  auto answer = co_await call(0, std::move(request), budget);
  if (!answer) {
    co_return tl::unexpected{answer.error()};
  }
  if (answer->status != 200) {
    co_return fail(errc::unavailable, rest_complaint(answer->status, answer->body));
  }
  co_return rest_targets::at_version(answer->version);
}

task<expected<socket_answer>> rest_service::call(std::uint64_t number, socket_request request,
                                                 std::chrono::milliseconds budget) {
  const auto id = ++last_call_;
  completion<expected<socket_answer>> answered{[this, id, number, &request, budget](auto done) {
    if (number != 0) {
      calls_[id] = {number, done};
    }
    context_.services.call(std::move(request), budget, std::move(done));
  }};
  auto socket = request.socket;
  auto answer = co_await answered;
  calls_.erase(id);
  if (number != 0 && !answer && answer.error().code == errc::timeout) {
    // Slow, or does it hang?
    auto alive = co_await ping(std::move(socket), ping_budget);
    if (!alive) {
      give_up(number);
    }
  }
  if (!answer &&
      (answer.error().code == errc::closed || answer.error().code == errc::runtime_lost)) {
    lost(number);
  }
  co_return answer;
}

void rest_service::lost(std::uint64_t number) {
  if (!is_current(number)) {
    return;
  }
  context_.env->log->warn("podman's service was lost; the next sandbox has it started again");
  current_.reset();
  if (child_ != 0) {
    // What answers no more must not stay beside its successor.
    context_.services.signal(child_, SIGKILL);
  }
  end_calls(number);
}

task<void> rest_service::wait_for_turn() {
  if (std::exchange(making_, true)) {
    completion<bool> turn{[this](auto done) { turns_.push_back(std::move(done)); }};
    co_await turn;
  }
}

void rest_service::end_turn() {
  if (turns_.empty()) {
    making_ = false;
    return;
  }
  auto next = std::move(turns_.front());
  turns_.pop_front();
  next(true);
}

bool rest_service::leave_users_own() {
  bool users = current_ && child_ == 0;
  if (users) {
    current_.reset();
  }
  return users;
}

bool rest_service::take_out_of_memory_note() {
  auto note = folder() + "/oom";
  struct stat info {};
  bool fresh =
      ::stat(note.c_str(), &info) == 0 && info.st_mtim.tv_sec + freshness >= std::time(nullptr);
  return ::unlink(note.c_str()) == 0 && fresh;
}

bool rest_service::take(const child_output& output) {
  if (child_ == 0 || output.id != child_) {
    return false;
  }
  complaint_ += output.bytes;
  if (auto keep = context_.env->bounds.stderr_tail; complaint_.size() > keep) {
    complaint_.erase(0, complaint_.size() - keep);
  }
  context_.services.credit(output.id, output.stream, output.bytes.size());
  return true;
}

bool rest_service::take(const child_exited& exit) {
  if (child_ == 0 || exit.id != child_) {
    return false;
  }
  child_ = 0;
  context_.env->log->info("podman's service ended with {}: {}", exit.exit_code,
                          engine_complaint(complaint_));
  context_.env->log->debug("the last it said: {}", complaint_);
  if (current_) {
    lost(current_->number);
  }
  return true;
}

task<void> rest_service::stop() {
  ending_ = true;
  if (auto last = std::exchange(current_, std::nullopt)) {
    end_calls(last->number);
  }
  if (child_ != 0) {
    context_.services.signal(child_, SIGKILL);
  }
  for (auto waited = 0ms; waited < end_budget && child_ != 0; waited += 5ms) {
    co_await context_.pause(5ms);
  }
  if (!cgroups_.empty()) {
    co_await clear_cgroups(context_, engine_, cgroups_);
  }
}

} // namespace bulkhead
