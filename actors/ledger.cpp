#include "actors/ledger.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include <caf/all.hpp>

#include "actors/errors.hpp"
#include "protocol/content_digest.hpp"

namespace bulkhead {

using namespace std::chrono_literals;

namespace {

/// What comes within this time is stored in one transaction.
constexpr auto batch_time = 200ms;
constexpr auto prune_interval = 1h;
/// Between two warnings that something couldn't be stored.
constexpr auto warning_interval = 1min;

constexpr std::size_t bytes_of_one = 4'096;

std::uint32_t weight(const ledger_text& text) {
  return 1 + static_cast<std::uint32_t>(text.text ? text.text->size() / bytes_of_one : 0);
}

std::int64_t milliseconds_of(std::chrono::system_clock::time_point time) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(time.time_since_epoch()).count();
}

} // namespace

template <class Record>
bool ledger_backlog::put(std::vector<Record> batch::*to, Record& record, const ledger_text& text) {
  std::lock_guard guard{mutex_};
  if (!std::exchange(announced_, true)) {
    return false;
  }
  auto cost = weight(text);
  if (weight_ + cost > most_waiting) {
    ++waiting_.dropped;
  } else {
    weight_ += cost;
    (waiting_.*to).push_back(std::move(record));
  }
  return true;
}

bool ledger_backlog::put(ledger_run& run) {
  return put(&batch::runs, run, run.code);
}

bool ledger_backlog::put(ledger_call& call) {
  return put(&batch::calls, call, call.arguments);
}

ledger_backlog::batch ledger_backlog::take() {
  std::lock_guard guard{mutex_};
  announced_ = false;
  weight_ = 0;
  return std::exchange(waiting_, {});
}

ledger_writer::ledger_writer(std::function<ledger_actor()> ledger,
                             std::shared_ptr<ledger_backlog> backlog, ledger_mode mode)
    : ledger_{std::move(ledger)}, backlog_{std::move(backlog)}, mode_{mode} {}

template <class Record>
void ledger_writer::send(Record record) const {
  if (on() && !backlog_->put(record)) {
    caf::anon_send(ledger_(), record_atom::value, std::move(record));
  }
}

void ledger_writer::record(ledger_run run) const {
  send(std::move(run));
}

void ledger_writer::record(ledger_call call) const {
  send(std::move(call));
}

ledger_text ledger_writer::kept(std::string_view text) const {
  ledger_text result{content_digest(text), text.size(), std::nullopt};
  if (mode_ == ledger_mode::full && text.size() <= ledger_text_limit) {
    result.text = std::string{text};
  }
  return result;
}

ledger_database::rules ledger_rules(const settings& config) {
  ledger_database::rules how;
  how.path = config.state_dir + "/ledger.db";
  how.days = config.ledger_days;
  return how;
}

ledger_state::ledger_state(ledger_impl_actor::pointer self) : self{self} {}

expected<ledger_database*> ledger_state::opened() {
  if (database && !database->in_place()) {
    database.reset();
  }
  if (!database) {
    auto made = ledger_database::open(ledger_rules(*env->config), ledger_database::access::write);
    if (!made) {
      return tl::unexpected{made.error()};
    }
    database = std::move(*made);
    prune_due = true;
  }
  return &*database;
}

template <class Record>
void ledger_state::take(std::vector<Record>& into, Record& record) {
  into.push_back(std::move(record));
  if (!std::exchange(store_due, true)) {
    self->delayed_send(self, batch_time, tick_atom::value);
  }
}

/// Adds what has come since the batch was announced.
void ledger_state::collect() {
  auto batch = backlog->take();
  std::move(batch.runs.begin(), batch.runs.end(), std::back_inserter(runs));
  std::move(batch.calls.begin(), batch.calls.end(), std::back_inserter(calls));
  if (batch.dropped > 0) {
    lose(batch.dropped, {errc::overloaded, "they came faster than the disk takes them"});
  }
}

void ledger_state::store() {
  collect();
  if (runs.empty() && calls.empty()) {
    return;
  }
  auto to = opened();
  auto stored = to ? (*to)->store(runs, calls) : expected<void>{tl::unexpected{to.error()}};
  if (!stored) {
    // Whatever is wrong with it, it is looked at afresh the next time.
    database.reset();
    lose(runs.size() + calls.size(), stored.error());
  } else if (std::exchange(prune_due, false) || database->too_large()) {
    prune();
  }
  runs.clear();
  calls.clear();
}

void ledger_state::lose(std::uint64_t records, const error& reason) {
  lost += records;
  auto now = self->clock().now();
  if (!told || now - *told >= warning_interval) {
    told = now;
    env->log->warn("the ledger lost {} records: {}", std::exchange(lost, 0), reason.message);
  }
}

void ledger_state::prune() {
  if (!database) {
    return;
  }
  auto dropped = database->prune(milliseconds_of(env->wall_clock()));
  if (!dropped) {
    env->log->warn("{}", dropped.error().message);
  } else if (*dropped > 0) {
    env->log->info("the ledger dropped its {} oldest records", *dropped);
  }
}

ledger_impl_actor::behavior_type ledger_state::make_behavior() {
  // What an earlier one was told of and didn't store.
  store_due = true;
  self->delayed_send(self, batch_time, tick_atom::value);
  self->delayed_send(self, prune_interval, tick_atom::value, list_atom::value);
  return {
      [this](record_atom, ledger_run& run) { take(runs, run); },
      [this](record_atom, ledger_call& call) { take(calls, call); },
      [this](read_atom, const ledger_query& query) -> caf::result<ledger_page> {
        store();
        auto from = opened();
        auto page = from ? (*from)->read(query) : tl::unexpected{from.error()};
        return page ? caf::result<ledger_page>{std::move(*page)}
                    : caf::result<ledger_page>{to_caf(page.error())};
      },
      [this](stop_atom) {
        store();
        if (lost > 0) {
          env->log->warn("the ledger lost {} records more", std::exchange(lost, 0));
        }
        return caf::ok_atom::value;
      },
      [this](tick_atom) {
        store_due = false;
        store();
      },
      [this](tick_atom, list_atom) {
        prune();
        self->delayed_send(self, prune_interval, tick_atom::value, list_atom::value);
      },
  };
}

ledger_impl_actor::behavior_type ledger(ledger_impl_actor::stateful_pointer<ledger_state> self,
                                        environment_ptr env,
                                        std::shared_ptr<ledger_backlog> backlog) {
  self->state.env = std::move(env);
  self->state.backlog = std::move(backlog);
  return self->state.make_behavior();
}

} // namespace bulkhead
