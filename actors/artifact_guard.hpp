#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "actors/unique_descriptor.hpp"
#include "protocol/error.hpp"

namespace bulkhead {

/// How much is kept below an artifact root (see artifact_folder).
struct artifact_usage {
  std::uint64_t bytes = 0;
  std::uint64_t items = 0; ///< artifacts and streams
  friend bool operator==(const artifact_usage&, const artifact_usage&) = default;
};

/// A run's folder.
struct run_folder {
  std::string handle;
  std::int64_t changed = 0; ///< when something was last added, nanoseconds since the epoch
};

/// Opens ROOT, which must be a folder of this account and no link, and makes it 0700; with `make`,
/// makes it. Errors: not_found (only without `make`), unavailable.
expected<unique_descriptor> open_artifact_root(const std::string& root, bool make);

/// The runs' folders, the oldest first.
std::vector<run_folder> run_folders(int root);

/// What a run's folder holds.
artifact_usage measure_run(int folder);

/// The lock of an artifact root, held as long as this lives, and the record of what is kept.
class artifact_guard {
public:
  /// Waits for the lock; counts what is there if the record is missing. Errors: unavailable.
  static expected<artifact_guard> take(unique_descriptor root);

  artifact_guard(artifact_guard&& other) noexcept = default;
  artifact_guard& operator=(artifact_guard&&) = delete;
  /// Writes the record.
  ~artifact_guard();

  int root() const { return root_.get(); }
  const artifact_usage& now() const { return now_; }
  /// Records at once that so much more is about to be kept: who dies before it writes leaves a
  /// record that is too high until the next sweep, never one that is too low.
  void add(std::uint64_t bytes, std::uint64_t items);
  void subtract(const artifact_usage& gone) {
    now_.bytes -= std::min(gone.bytes, now_.bytes);
    now_.items -= std::min(gone.items, now_.items);
  }
  void set(const artifact_usage& all) { now_ = all; }

private:
  artifact_guard(unique_descriptor root, unique_descriptor lock)
      : root_{std::move(root)}, lock_{std::move(lock)} {}
  bool read_record();
  void write_record();

  unique_descriptor root_;
  unique_descriptor lock_; ///< closing it gives the lock back
  artifact_usage recorded_;
  bool counted_ = false; ///< there was no record
  artifact_usage now_;
};

} // namespace bulkhead
