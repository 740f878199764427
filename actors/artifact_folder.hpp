#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "actors/artifact_guard.hpp"
#include "actors/unique_descriptor.hpp"
#include "protocol/artifact.hpp"
#include "protocol/error.hpp"
#include "protocol/wire.hpp"

namespace bulkhead {

/// What runs leave, as files of this account:
///
///   ROOT/lock             locked while anything changes; has how much there is, so that no change
///                         has to count
///   ROOT/HANDLE/          what one run left; locked by its process until the run is over
///   ROOT/HANDLE/1, 2, …   artifacts; `1.json` has owner, name and media type
///   ROOT/HANDLE/stdout    all that was written there, or its beginning; `stdout.json` has owner
///                         and total, and is blank until the run is over
///
/// Names that come from code stand in the .json files only. Folders are 0700, files 0600. Several
/// processes may use one root; what all of them keep never exceeds the quota or the count. The
/// oldest runs' things go first, those of runs that go on never; then what is new isn't kept.
/// Blocking; not thread-safe.
class artifact_folder {
public:
  struct rules {
    std::string root;
    std::uint64_t quota = 0;         ///< bytes of all that is kept; 0: nothing is
    std::uint64_t spill = 0;         ///< bytes of one run's output, both streams together
    std::uint64_t count = 1000;      ///< artifacts and streams kept
    std::chrono::seconds age{86400}; ///< how long
    std::function<std::chrono::system_clock::time_point()> now;
  };

  explicit artifact_folder(rules bounds) : rules_{std::move(bounds)} {}

  /// See artifact_store_actor for these.
  kept_bytes append(const stored_run& run, stream_id stream, std::string_view bytes);
  expected<std::string> save(const stored_run& run, const guest_artifact& artifact);
  expected<void> seal(const stored_run& run, std::uint64_t out_total, std::uint64_t err_total);
  expected<resource_part> read(const resource_range& range, std::size_t most) const;
  expected<resource_page> list(const std::string& owner, std::string_view cursor) const;

  /// The run's process lost it: what it left goes.
  void discard(const std::string& handle);

  /// Removes what is too old, what dead processes left unfinished, and what is over the quota.
  expected<void> sweep();

private:
  using guard = artifact_guard;

  struct stream_file {
    unique_descriptor data;
    unique_descriptor about;
    kept_bytes kept;
  };
  /// A run that goes on.
  struct open_run {
    std::string owner;
    unique_descriptor folder; ///< locked
    std::map<stream_id, stream_file> streams;
    std::map<std::string, std::string> artifacts; ///< name to file
    std::uint64_t spilled = 0;
    std::uint64_t serial = 0;
  };

  expected<guard> lock() const;
  expected<void> make_run_folder(const stored_run& run, open_run& of, guard& held);
  expected<void> start(const stored_run& run, open_run& of, stream_id stream, guard& held);
  void write_some(open_run& of, stream_file& to, std::string_view bytes, guard& held);
  expected<void> write_artifact(const open_run& of, const std::string& file,
                                const guest_artifact& artifact, const std::string& about) const;
  bool make_room(guard& held, std::uint64_t bytes, std::uint64_t items) const;
  artifact_usage sweep_run(int root, const run_folder& which) const;
  static artifact_usage remove_run(int root, const std::string& handle);
  bool too_old(std::int64_t changed) const;

  rules rules_;
  std::map<std::string, open_run> open_;
};

} // namespace bulkhead
