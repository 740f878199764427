#pragma once

#include <memory>
#include <string>

#include <spdlog/logger.h>

#include "actors/messages.hpp"

namespace bulkhead {

/// Servers' documents on disk, from one start to the next: a file each, which nobody else can read
/// or write. Named by the server and its configuration, so that another configuration has none.
/// Blocks on the disk. What can't be read or written is told in the log and done without.
class document_cache {
public:
  /// `folder` is made when something is first stored; empty: nothing is kept.
  document_cache(std::string folder, std::shared_ptr<spdlog::logger> log);

  /// What is known of a server; null: nothing. A file that is of no use is removed.
  documents_ptr load(const server_entry& entry) const;

  /// Keeps a server's documents, in place of earlier ones, if that is within the bounds: 8 MiB a
  /// server, 64 MiB and 256 servers in all, of which the oldest go.
  void store(const server_entry& entry, const server_documents& documents) const;

private:
  std::string path_of(const server_entry& entry) const;
  void make_room() const;

  std::string folder_;
  std::shared_ptr<spdlog::logger> log_;
};

} // namespace bulkhead
