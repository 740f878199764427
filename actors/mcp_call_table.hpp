#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <list>
#include <map>
#include <optional>
#include <ranges>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <caf/actor_addr.hpp>
#include <caf/typed_response_promise.hpp>

#include "actors/interfaces.hpp"
#include "actors/memory_budget.hpp"
#include "protocol/rate_gate.hpp"
#include "protocol/upstream_questions.hpp"

namespace bulkhead {

/// The input that a call waits for before it is made again.
struct input_round {
  std::string state; ///< JSON text as it came
  std::vector<upstream::input_response> responses;
  std::size_t missing = 0;
  memory_budget::share memory; ///< for the questions
};

/// A tool call that waits for its server.
struct upstream_call {
  using clock = std::chrono::steady_clock;

  std::uint64_t caller_id = 0; ///< what the caller cancels it by
  std::string tool;
  std::string arguments; ///< empty once sent to a server that won't ask for them again
  clock::time_point due;
  caf::typed_response_promise<std::string> promise;
  memory_budget::share memory; ///< for the arguments
  std::optional<clock::time_point> sent;
  answer_room room; ///< for the result
  tool_caller_actor caller{};
  trace_context trace{};
  /// Where the server is shared: by whom the call came, with whose other calls it waits in line.
  caf::actor_addr line{};

  std::uint32_t questions = 0; ///< asked so far
  std::uint32_t open = 0;      ///< of them, those without an answer; meanwhile its time rests
  clock::time_point rests_since{};
  clock::duration rested{};
  std::uint32_t rounds = 0; ///< how often it was made again
  std::optional<input_round> round{};
  double progress = -std::numeric_limits<double>::infinity();
  rate_gate progress_gate{16, std::chrono::milliseconds{62}};
};

/// The calls of one server that have no answer yet, by the request id that the server sees.
class mcp_call_table {
public:
  using clock = upstream_call::clock;

  /// False if a call of the same caller's id is there already. Calls that aren't sent at once wait
  /// in this order, those of each line for themselves: the lines take turns.
  bool add(std::uint64_t id, upstream_call call) {
    if (!by_caller_.emplace(call.caller_id, id).second) {
      return false;
    }
    due_.emplace(call.due, id);
    line_of(call.line).push_back(id);
    ++waiting_;
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

  /// The call whose turn it is; nothing if all are sent.
  std::optional<std::uint64_t> first_waiting() const {
    return lines_.empty() ? std::nullopt : std::optional{lines_.front().second.front()};
  }

  /// The calls of one line that aren't sent.
  std::size_t waiting(const caf::actor_addr& line) const {
    auto found = find_line(lines_, line);
    return found == lines_.end() ? 0 : found->second.size();
  }
  std::size_t sent() const { return calls_.size() - waiting_; }

  /// The call goes to the server now; its deadline is no later than `due`.
  void mark_sent(std::uint64_t id, upstream_call& call, clock::time_point now,
                 clock::time_point due) {
    leave_line(id, call, true);
    call.sent = now;
    set_due(id, call, std::min(call.due, due));
  }

  /// Moves the deadline of `call`, which has the request id `id`.
  void set_due(std::uint64_t id, upstream_call& call, clock::time_point due) {
    due_.erase({call.due, id});
    call.due = due;
    due_.emplace(due, id);
  }

  /// A question of the call is asked: its deadline rests.
  void rest(std::uint64_t id, upstream_call& call, clock::time_point now) {
    if (call.open++ == 0) {
      call.rests_since = now;
      due_.erase({call.due, id});
    }
  }

  /// A question of the call has been answered; its deadline moves by the time it rested.
  void resume(std::uint64_t id, upstream_call& call, clock::time_point now) {
    if (--call.open == 0) {
      call.rested += now - call.rests_since;
      call.due += now - call.rests_since;
      due_.emplace(call.due, id);
    }
  }

  /// The call, which doesn't rest, is made again by another id.
  upstream_call& rename(std::uint64_t id, std::uint64_t new_id) {
    auto node = calls_.extract(id);
    node.key() = new_id;
    auto& call = node.mapped();
    by_caller_[call.caller_id] = new_id;
    due_.erase({call.due, id});
    due_.emplace(call.due, new_id);
    calls_.insert(std::move(node));
    return call;
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
    if (!call.sent) {
      leave_line(id, call, false);
    }
    return call;
  }

  /// Nobody waits for the call any more, but the server may work on it until then.
  void note_abandoned(const upstream_call& call, clock::time_point now, clock::time_point until) {
    // Each keeps what is left of its caller's actor.
    std::erase_if(abandoned_, [&](const auto& entry) { return entry.second <= now; });
    auto& latest = abandoned_[call.caller.address()];
    latest = std::max(latest, until);
  }

  /// The process that worked on them is gone.
  void forget_abandoned() { abandoned_.clear(); }

  /// The call in which a server asks something that doesn't say so itself. If only one caller's
  /// calls can be meant, it is the oldest of them; what one caller asked is never taken for
  /// another's. Errors: closed when there is none, overloaded when it can't be told.
  expected<std::uint64_t> asking(clock::time_point now);

  /// The request ids in order of their deadlines.
  std::vector<std::uint64_t> ids() const {
    std::vector<std::pair<clock::time_point, std::uint64_t>> all;
    for (const auto& [id, call] : calls_) {
      all.emplace_back(call.due, id);
    }
    std::sort(all.begin(), all.end());
    std::vector<std::uint64_t> result;
    for (const auto& [when, id] : all) {
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
  using line = std::pair<caf::actor_addr, std::deque<std::uint64_t>>;

  template <class Lines>
  static std::ranges::iterator_t<Lines> find_line(Lines& lines, const caf::actor_addr& whose) {
    return std::find_if(lines.begin(), lines.end(),
                        [&](const line& each) { return each.first == whose; });
  }

  std::deque<std::uint64_t>& line_of(const caf::actor_addr& whose) {
    auto found = find_line(lines_, whose);
    if (found == lines_.end()) {
      found = lines_.insert(lines_.end(), {whose, {}});
    }
    return found->second;
  }

  /// A line that had its turn is the last one then.
  void leave_line(std::uint64_t id, const upstream_call& call, bool had_turn) {
    auto found = find_line(lines_, call.line);
    waiting_ -= std::erase(found->second, id);
    if (found->second.empty()) {
      lines_.erase(found);
    } else if (had_turn) {
      lines_.splice(lines_.end(), lines_, found);
    }
  }

  std::unordered_map<std::uint64_t, upstream_call> calls_;
  std::unordered_map<std::uint64_t, std::uint64_t> by_caller_;
  std::set<std::pair<clock::time_point, std::uint64_t>> due_; ///< of those that don't rest
  std::list<line> lines_;   ///< of those that aren't sent, none empty; the first one's turn it is
  std::size_t waiting_ = 0; ///< in all lines
  std::map<caf::actor_addr, clock::time_point> abandoned_;
};

} // namespace bulkhead
