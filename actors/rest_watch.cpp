#include <csignal>
#include <utility>

#include "actors/rest_service.hpp"

/// Whether podman's service still answers, and what ends with it where it doesn't.

namespace bulkhead {

using namespace std::chrono_literals;

namespace {

/// Between two looks at a service that answers, and after a look that it missed. A busy machine may
/// cost it one, so that it takes two in a row to give it up.
constexpr auto watch_interval = 2s;
constexpr auto second_look = 500ms;
constexpr int most_misses = 2;
/// Of each of two looks when Bulkhead ends: a mistake costs the removal of containers by commands.
constexpr auto last_ping_budget = 600ms;

} // namespace

void rest_service::give_up(std::uint64_t number) {
  if (!is_current(number)) {
    return;
  }
  context_.env->log->warn("podman's service doesn't answer any more and is given up");
  lost(number);
  // The user's own isn't ours to kill, and one that can't be killed doesn't end its streams either.
  for (auto each = streams_.begin(); each != streams_.end();) {
    if (each->second == number) {
      context_.services.signal(each->first, SIGHUP);
      each = streams_.erase(each);
    } else {
      ++each;
    }
  }
}

void rest_service::end_calls(std::uint64_t number) {
  // Who waits goes on at once, and may call again.
  std::vector<std::function<void(expected<socket_answer>)>> ended;
  for (auto& [id, each] : calls_) {
    if (each.number == number) {
      ended.push_back(std::exchange(each.done, nullptr));
      each.number = 0;
    }
  }
  for (auto& done : ended) {
    done(fail(errc::runtime_lost, "it was lost"));
  }
}

task<void> rest_service::watch(rest_link link) {
  int missed = 0;
  while (missed < most_misses) {
    co_await context_.pause(missed == 0 ? watch_interval : second_look);
    if (!is_current(link.number)) {
      co_return;
    }
    if (calls_.empty() && streams_.empty()) {
      missed = 0;
      continue;
    }
    auto alive = co_await ping(link.socket, ping_budget);
    missed = alive ? 0 : missed + 1;
  }
  give_up(link.number);
}

void rest_service::hurry() {
  ending_ = true;
  if (current_) {
    watches_.start(look_twice(*current_));
  }
}

task<void> rest_service::look_twice(rest_link link) {
  for (int missed = 0; missed < most_misses; ++missed) {
    auto alive = co_await ping(link.socket, last_ping_budget);
    if (alive) {
      co_return;
    }
  }
  give_up(link.number);
}

} // namespace bulkhead
