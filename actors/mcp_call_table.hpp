#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <caf/typed_response_promise.hpp>

#include "actors/memory_budget.hpp"

namespace bulkhead {

/// A tool call that waits for its server.
struct upstream_call {
  using clock = std::chrono::steady_clock;

  std::uint64_t caller_id = 0; ///< what the caller cancels it by
  std::string tool;
  std::string arguments; ///< empty once sent
  clock::time_point due;
  caf::typed_response_promise<std::string> promise;
  memory_budget::share memory; ///< for the arguments, until sent
  std::optional<clock::time_point> sent;
  answer_room room; ///< for the result
};

/// The calls of one server that have no answer yet, by the request id that the server sees.
class mcp_call_table {
public:
  using clock = upstream_call::clock;

  /// False if a call of the same caller's id is there already.
  bool add(std::uint64_t id, upstream_call call) {
    if (!by_caller_.emplace(call.caller_id, id).second) {
      return false;
    }
    due_.emplace(call.due, id);
    calls_.emplace(id, std::move(call));
    return true;
  }

  upstream_call* find(std::uint64_t id) {
    auto found = calls_.find(id);
    return found == calls_.end() ? nullptr : &found->second;
  }

  std::optional<std::uint64_t> of_caller(std::uint64_t caller_id) const {
    auto found = by_caller_.find(caller_id);
    return found == by_caller_.end() ? std::nullopt : std::optional{found->second};
  }

  /// Moves the deadline of `call`, which has the request id `id`.
  void set_due(std::uint64_t id, upstream_call& call, clock::time_point due) {
    due_.erase({call.due, id});
    call.due = due;
    due_.emplace(due, id);
  }

  /// Takes a call out; nothing if it isn't there (any more).
  std::optional<upstream_call> take(std::uint64_t id) {
    auto found = calls_.find(id);
    if (found == calls_.end()) {
      return std::nullopt;
    }
    auto call = std::move(found->second);
    calls_.erase(found);
    by_caller_.erase(call.caller_id);
    due_.erase({call.due, id});
    return call;
  }

  /// The request ids in order of their deadlines.
  std::vector<std::uint64_t> ids() const {
    std::vector<std::uint64_t> result;
    result.reserve(due_.size());
    for (const auto& [when, id] : due_) {
      result.push_back(id);
    }
    return result;
  }

  /// The call whose deadline comes first.
  std::optional<std::pair<clock::time_point, std::uint64_t>> first_due() const {
    return due_.empty() ? std::nullopt : std::optional{*due_.begin()};
  }

  bool empty() const { return calls_.empty(); }
  std::size_t size() const { return calls_.size(); }

private:
  std::unordered_map<std::uint64_t, upstream_call> calls_;
  std::unordered_map<std::uint64_t, std::uint64_t> by_caller_;
  std::set<std::pair<clock::time_point, std::uint64_t>> due_;
};

} // namespace bulkhead
