#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "actors/memory_budget.hpp"
#include "protocol/page_answer.hpp"
#include "protocol/run_answer.hpp"
#include "protocol/run_statistics.hpp"

namespace bulkhead {

/// What the page shows of one tenant's runs: those that go on, the newest that ended with what
/// their answers held, and how the last hour went. Sessions write it, in microseconds; whoever
/// looks reads copies. Thread-safe, bounded in number and bytes.
class run_book {
public:
  struct bounds {
    std::size_t running = 512;        ///< further ones aren't shown
    std::size_t ended = 100;          ///< the oldest goes first
    std::size_t bytes = 2 * mebibyte; ///< of all answers; beyond, the oldest ones' go
    std::size_t live = 16 * kibibyte; ///< of what a run wrote last, while it goes on
  };

  /// `budget` is for the answers; one for which it has no room isn't kept.
  explicit run_book(std::shared_ptr<memory_budget> budget);
  run_book(std::shared_ptr<memory_budget> budget, bounds most);

  /// A run was asked for; `keeper` is whose run it is (see `left`), `cancel` asks that to end it.
  void asked(shown_run run, std::uint64_t keeper, std::function<void()> cancel);
  /// It is that far, or does that, as a text for people.
  void reached(const std::string& run, std::string_view stage);
  void in_session(const std::string& run, std::string name, std::vector<std::string> servers);
  /// Its code wrote, as far as that is told while it runs.
  void wrote(const std::string& run, std::string_view text);
  /// It ended at that time (milliseconds since 1970).
  void ended(const std::string& run, const run_answer& answer, std::int64_t at);
  /// Whoever had these runs is gone without a word about them.
  void left(std::uint64_t keeper, std::int64_t at);

  /// Counts up with each change.
  std::uint64_t changes() const;

  /// Those that go on, in the order in which they were asked for, and those that ended, the newest
  /// first; so many of each at the most.
  struct overview {
    std::vector<shown_run> running;
    std::vector<shown_run> ended;
  };
  overview now(std::size_t most) const;

  /// One of them.
  struct details {
    shown_run run;
    std::string live;   ///< what it wrote last, while it goes on
    std::string answer; ///< its structured content, JSON text; empty: it goes on, or isn't kept
  };
  std::optional<details> find(const std::string& run) const;

  std::vector<run_minute> last_hour(std::int64_t now) const;

  /// Has a run cancelled; false when no such run goes on.
  bool cancel(const std::string& run) const;

private:
  struct going {
    shown_run run;
    std::uint64_t keeper = 0;
    std::function<void()> cancel;
    std::string live;
  };
  struct past {
    shown_run run;
    std::string answer;
    memory_budget::share held;
  };

  void end(std::list<going>::iterator which, past ended);
  void make_room();
  std::list<going>::iterator find_going(const std::string& run);

  std::shared_ptr<memory_budget> budget_;
  bounds most_;
  mutable std::mutex mutex_;
  std::list<going> going_;
  std::map<std::string, std::list<going>::iterator> by_id_;
  std::deque<past> past_; ///< the oldest first
  std::size_t past_bytes_ = 0;
  run_statistics statistics_;
  std::uint64_t changes_ = 0;
};

} // namespace bulkhead
