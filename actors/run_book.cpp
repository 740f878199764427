#include "actors/run_book.hpp"

#include <algorithm>
#include <utility>

#include "protocol/printable.hpp"
#include "protocol/utf8.hpp"

namespace bulkhead {

namespace {

/// A stage is a few words; where an upstream server has a say in it, it could be anything.
constexpr std::size_t stage_limit = 200;

std::string error_of(const run_answer& answer) {
  if (answer.failure) {
    return std::string{to_string(answer.failure->code)};
  }
  return answer.exception ? answer.exception->type : std::string{};
}

/// The handle of a session opens it; it is nothing to be shown.
std::string without_handle(run_answer answer) {
  answer.session.clear();
  return render_structured(answer);
}

} // namespace

run_book::run_book(std::shared_ptr<memory_budget> budget) : run_book{std::move(budget), bounds{}} {}

run_book::run_book(std::shared_ptr<memory_budget> budget, bounds most)
    : budget_{std::move(budget)}, most_{most} {}

std::list<run_book::going>::iterator run_book::find_going(const std::string& run) {
  auto found = by_id_.find(run);
  return found == by_id_.end() ? going_.end() : found->second;
}

void run_book::asked(shown_run run, std::uint64_t keeper, std::function<void()> cancel) {
  std::lock_guard guard{mutex_};
  if (going_.size() >= most_.running || by_id_.contains(run.run)) {
    return;
  }
  ++changes_;
  auto id = run.run;
  by_id_[id] = going_.insert(going_.end(), going{std::move(run), keeper, std::move(cancel), {}});
}

void run_book::reached(const std::string& run, std::string_view stage) {
  auto text = shortened(printable(to_utf8(stage)), stage_limit);
  std::lock_guard guard{mutex_};
  if (auto found = find_going(run); found != going_.end() && found->run.stage != text) {
    ++changes_;
    found->run.stage = std::move(text);
  }
}

void run_book::in_session(const std::string& run, std::string name,
                          std::vector<std::string> servers) {
  std::lock_guard guard{mutex_};
  if (auto found = find_going(run); found != going_.end()) {
    ++changes_;
    found->run.session = std::move(name);
    found->run.servers = std::move(servers);
  }
}

void run_book::wrote(const std::string& run, std::string_view text) {
  std::lock_guard guard{mutex_};
  auto found = find_going(run);
  if (found == going_.end()) {
    return;
  }
  ++changes_;
  ++found->run.written;
  auto& live = found->live;
  live.append(text).append("\n");
  if (live.size() > most_.live) {
    live = std::string{trim_split_start(std::string_view{live}.substr(live.size() - most_.live))};
  }
}

void run_book::ended(const std::string& run, const run_answer& answer, std::int64_t at) {
  past made;
  made.answer = without_handle(answer);
  if (!budget_->take_if_ample(made.answer.size(), made.held)) {
    made.answer.clear();
  }
  std::lock_guard guard{mutex_};
  statistics_.add(at, to_string(answer.status), answer.duration_ms);
  auto found = find_going(run);
  if (found == going_.end()) {
    ++changes_;
    return;
  }
  made.run = std::move(found->run);
  made.run.stage.clear();
  made.run.ended_at = std::max<std::int64_t>(at, 1);
  made.run.outcome = to_string(answer.status);
  made.run.error = error_of(answer);
  made.run.duration_ms = answer.duration_ms;
  end(found, std::move(made));
}

void run_book::end(std::list<going>::iterator which, past ended) {
  ++changes_;
  by_id_.erase(ended.run.run);
  going_.erase(which);
  past_bytes_ += ended.answer.size();
  past_.push_back(std::move(ended));
  make_room();
}

void run_book::make_room() {
  while (past_.size() > most_.ended) {
    past_bytes_ -= past_.front().answer.size();
    past_.pop_front();
  }
  for (auto& each : past_) {
    if (past_bytes_ <= most_.bytes) {
      return;
    }
    past_bytes_ -= each.answer.size();
    each.answer = {};
    each.held.release();
  }
}

void run_book::left(std::uint64_t keeper, std::int64_t at) {
  std::lock_guard guard{mutex_};
  for (auto each = going_.begin(); each != going_.end();) {
    auto current = each++;
    if (current->keeper != keeper) {
      continue;
    }
    past made;
    made.run = std::move(current->run);
    made.run.stage.clear();
    made.run.ended_at = std::max<std::int64_t>(at, 1);
    made.run.outcome = to_string(run_status::error);
    made.run.error = to_string(errc::internal);
    end(current, std::move(made));
  }
}

std::uint64_t run_book::changes() const {
  std::lock_guard guard{mutex_};
  return changes_;
}

run_book::overview run_book::now(std::size_t most) const {
  std::lock_guard guard{mutex_};
  overview result;
  for (const auto& each : going_) {
    if (result.running.size() == most) {
      break;
    }
    result.running.push_back(each.run);
  }
  for (auto each = past_.rbegin(); each != past_.rend() && result.ended.size() < most; ++each) {
    result.ended.push_back(each->run);
  }
  return result;
}

std::optional<run_book::details> run_book::find(const std::string& run) const {
  std::lock_guard guard{mutex_};
  if (auto found = by_id_.find(run); found != by_id_.end()) {
    return details{found->second->run, found->second->live, {}};
  }
  auto found = std::find_if(past_.begin(), past_.end(),
                            [&](const past& each) { return each.run.run == run; });
  return found == past_.end() ? std::nullopt
                              : std::optional{details{found->run, {}, found->answer}};
}

std::vector<run_minute> run_book::last_hour(std::int64_t now) const {
  std::lock_guard guard{mutex_};
  return statistics_.last_hour(now);
}

bool run_book::cancel(const std::string& run) const {
  std::function<void()> cancel;
  {
    std::lock_guard guard{mutex_};
    auto found = by_id_.find(run);
    if (found == by_id_.end()) {
      return false;
    }
    cancel = found->second->cancel;
  }
  cancel();
  return true;
}

} // namespace bulkhead
