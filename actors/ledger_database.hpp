#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/error.hpp"
#include "protocol/ledger_record.hpp"

struct sqlite3;

namespace bulkhead {

/// The ledger's file: an SQLite database (WAL) that several processes may share. It belongs to its
/// account alone (0600). Not thread-safe.
class ledger_database {
public:
  struct rules {
    std::string path;
    std::uint32_t days = 30;                   ///< records that are older go
    std::uint64_t most_bytes = 256ULL << 20;   ///< over it, the oldest records go
    std::chrono::milliseconds patience{2'000}; ///< for a lock that another process holds
  };
  enum class access : std::uint8_t { write, read };

  /// Makes the file and its tables if need be; for reading it must be there (not_found). Errors:
  /// unavailable, and denied for a file that is no ledger, that a later version wrote, or that
  /// isn't the account's alone.
  static expected<ledger_database> open(rules how, access as);

  ledger_database(ledger_database&&) noexcept;
  ledger_database& operator=(ledger_database&&) noexcept;
  ~ledger_database();

  /// Is what was opened still the file of that name?
  bool in_place() const;

  /// Stores all of them or none. A run that is there stays as it is. Errors: unavailable.
  expected<void> store(const std::vector<ledger_run>& runs, const std::vector<ledger_call>& calls);

  /// Hands out what fits, the newest first, until that is enough (false) or `limit` are. Errors:
  /// unavailable.
  expected<void> visit_runs(const ledger_query& query,
                            const std::function<bool(ledger_run)>& visitor) const;
  expected<void> visit_calls(const ledger_query& query,
                             const std::function<bool(ledger_call)>& visitor) const;

  /// At most 200 of them. Errors: unavailable.
  expected<ledger_page> read(ledger_query query) const;

  /// Drops what is too old at `now` (milliseconds since 1970), and the oldest while there is too
  /// much. Answers how many records went. Errors: unavailable.
  expected<std::uint64_t> prune(std::int64_t now);

  /// Is there so much that something has to go?
  bool too_large() const;

private:
  struct closer {
    void operator()(sqlite3* database) const;
  };
  ledger_database(rules how, sqlite3* database);
  expected<void> settle(access as);
  expected<void> settle_schema();
  expected<void> run(const char* sql) const;
  expected<std::uint64_t> drop(const char* sql, std::int64_t value);
  std::uint64_t number(const char* sql) const;
  tl::unexpected<error> failure(std::string_view what) const;

  rules how_;
  std::unique_ptr<sqlite3, closer> database_;
  std::uint64_t file_ = 0; ///< its inode
};

} // namespace bulkhead
