#include "actors/probe_session.hpp"

#include <csignal>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "actors/container_drive.hpp"
#include "actors/engine_errors.hpp"

namespace bulkhead {

using namespace std::chrono_literals;

namespace {

/// An image's first container may be copied for the user namespace, which takes a second for each
/// 64 MB.
constexpr auto answer_budget = 30s;
constexpr std::size_t longest_answer = 64 * kibibyte;

} // namespace

task<expected<std::string>> probe_session::open(cgroup_limits limits) {
  auto started = co_await start(limits);
  if (!started) {
    co_return tl::unexpected{started.error()};
  }
  auto hello = co_await next_line();
  if (!hello) {
    co_return tl::unexpected{hello.error()};
  }
  auto ready = nlohmann::json::parse(*hello, nullptr, false);
  if (!ready.is_object() || !ready.contains("ready") || !ready["ready"].is_string()) {
    co_return fail(errc::unavailable, "probe the sandbox: its first line isn't the probe's");
  }
  auto confined = confine_container(context_, facts_, record_);
  if (!confined) {
    co_return tl::unexpected{confined.error()};
  }
  co_return ready["ready"].get<std::string>();
}

task<expected<void>> probe_session::start(cgroup_limits limits) {
  auto id = context_.env->new_handle();
  completion<expected<std::string>> made{
      [this, id](auto done) { context_.services.make_folder(id, std::move(done)); }};
  auto folder = co_await made;
  if (!folder) {
    co_return tl::unexpected{folder.error()};
  }
  std::vector<std::string> command = {"python3", "-I", "-S", "/ipc/bulkhead_probe.py"};
  record_.handle.id = id;
  container_request request{id, std::move(*folder)};
  stdio_owner stdio{{}, this};
  auto started = co_await start_container(context_, facts_, std::move(request), limits,
                                          std::move(command), std::move(stdio));
  if (!started) {
    co_return tl::unexpected{started.error()};
  }
  record_ = std::move(*started);
  co_return expected<void>{};
}

task<expected<std::string>> probe_session::ask(std::string command) {
  context_.services.write(record_.handle.child, command + "\n");
  auto answer = co_await next_line();
  co_return answer;
}

task<expected<std::string>> probe_session::next_line() {
  auto number = ++*wait_number_;
  std::weak_ptr<std::uint64_t> current = wait_number_;
  context_.services.after(answer_budget, [this, current, number](bool) {
    if (auto waits = current.lock(); waits && *waits == number) {
      wake(false);
    }
  });
  for (;;) {
    if (auto end = received_.find('\n'); end != std::string::npos) {
      ++*wait_number_;
      auto line = received_.substr(0, end);
      received_.erase(0, end + 1);
      co_return line;
    }
    if (exit_) {
      ++*wait_number_;
      co_return tl::unexpected{
          explain_start_failure(context_, facts_, exit_->exit_code, complaint_)};
    }
    if (received_.size() > longest_answer) {
      co_return fail(errc::unavailable, "probe the sandbox: its answer is too long");
    }
    completion<bool> event{[this](auto done) { waiting_ = std::move(done); }};
    bool in_time = co_await event;
    if (!in_time) {
      co_return fail(
          errc::unavailable,
          fmt::format("probe the sandbox: container {} said nothing for {} s; see what the "
                      "engine says: {} ps -a",
                      record_.handle.name, answer_budget.count(), facts_.engine.binary));
    }
  }
}

task<expected<void>> probe_session::close() {
  ++*wait_number_;
  expected<void> removed;
  if (record_.handle.child != 0) {
    removed = co_await end_container(context_, facts_, record_);
  }
  if (!record_.handle.id.empty()) {
    context_.services.discard_folder(record_.handle.id);
  }
  co_return removed;
}

probe_session::~probe_session() {
  context_.sessions.erase(record_.handle.child);
}

void probe_session::take(const child_output& output) {
  if (output.stream == stream_id::out) {
    received_ += output.bytes;
  } else if (complaint_.size() < 4 * kibibyte) {
    complaint_ += output.bytes;
  }
  wake(true);
}

void probe_session::take(const child_exited& exit) {
  exit_ = exit;
  wake(true);
}

void probe_session::wake(bool in_time) {
  if (auto waiting = std::exchange(waiting_, nullptr)) {
    waiting(in_time);
  }
}

} // namespace bulkhead
