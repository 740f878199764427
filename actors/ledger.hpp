#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include "actors/environment.hpp"
#include "actors/interfaces.hpp"
#include "actors/ledger_database.hpp"

namespace bulkhead {

/// Records that wait for the ledger. Only the first of a batch goes by message: it would cost each
/// tool call more to wake the ledger's thread than all the rest of its record. Thread-safe.
class ledger_backlog {
public:
  /// What may wait: a record counts for one, and for another one with each 4 KiB of its text.
  static constexpr std::uint32_t most_waiting = 4'096;

  struct batch {
    std::vector<ledger_run> runs;
    std::vector<ledger_call> calls;
    std::uint64_t dropped = 0; ///< for want of room
  };

  /// Takes the record over, unless it is the first since the last `take`: then it is left, and
  /// false.
  bool put(ledger_run& run);
  bool put(ledger_call& call);

  batch take();

private:
  template <class Record>
  bool put(std::vector<Record> batch::*to, Record& record, const ledger_text& text);

  std::mutex mutex_;
  batch waiting_;
  std::uint32_t weight_ = 0;
  bool announced_ = false;
};

/// The way to the ledger: it never waits for the disk and never fails. While more records wait than
/// the bound, others are dropped, and counted. Copies share the backlog.
class ledger_writer {
public:
  /// One that records nothing.
  ledger_writer() = default;
  ledger_writer(std::function<ledger_actor()> ledger, std::shared_ptr<ledger_backlog> backlog,
                ledger_mode mode);

  /// False: there is no need to make records.
  bool on() const { return mode_ != ledger_mode::off; }

  void record(ledger_run run) const;
  void record(ledger_call call) const;

  /// Code or arguments as they are to be kept.
  ledger_text kept(std::string_view text) const;

private:
  template <class Record>
  void send(Record record) const;

  std::function<ledger_actor()> ledger_;
  std::shared_ptr<ledger_backlog> backlog_;
  ledger_mode mode_ = ledger_mode::off;
};

/// The ledger with the timers it sends itself.
using ledger_impl_actor = ledger_actor::extend<
    /// What has come is stored.
    caf::reacts_to<tick_atom>,
    /// What is too old goes.
    caf::reacts_to<tick_atom, list_atom>>;

/// Stores what comes in batches: a transaction waits for the disk, whatever it holds. A file that
/// can't be written costs the records and a warning, no more. In production it is spawned detached.
struct ledger_state {
  explicit ledger_state(ledger_impl_actor::pointer self);
  ledger_impl_actor::behavior_type make_behavior();

  template <class Record>
  void take(std::vector<Record>& into, Record& record);
  void store();
  void collect();
  void lose(std::uint64_t records, const error& reason);
  void prune();
  expected<ledger_database*> opened();

  ledger_impl_actor::pointer self;
  environment_ptr env;
  std::shared_ptr<ledger_backlog> backlog;
  std::optional<ledger_database> database;
  std::vector<ledger_run> runs;
  std::vector<ledger_call> calls;
  bool store_due = false;
  bool prune_due = false; ///< the file has just been opened
  std::uint64_t lost = 0; ///< since it was told last
  std::optional<std::chrono::steady_clock::time_point> told;

  static inline const char* name = "ledger";
};

ledger_impl_actor::behavior_type ledger(ledger_impl_actor::stateful_pointer<ledger_state> self,
                                        environment_ptr env,
                                        std::shared_ptr<ledger_backlog> backlog);

/// Where the ledger of these settings is, and how it is kept.
ledger_database::rules ledger_rules(const settings& config);

} // namespace bulkhead
