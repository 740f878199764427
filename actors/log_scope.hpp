#pragma once

#include "protocol/log_line.hpp"

namespace bulkhead {

/// While it lives, the lines that this thread logs are about this. Only around what logs: an actor
/// may go on in another thread with its next message.
class log_scope {
public:
  /// What the ids point to must outlive this.
  explicit log_scope(const log_ids& ids) : ids_{ids}, before_{current_} { current_ = &ids_; }
  ~log_scope() { current_ = before_; }
  log_scope(const log_scope&) = delete;
  log_scope& operator=(const log_scope&) = delete;

  /// What this thread's lines are about.
  static log_ids current() { return current_ != nullptr ? *current_ : log_ids{}; }

private:
  log_ids ids_;
  const log_ids* before_;
  static inline thread_local const log_ids* current_ = nullptr;
};

} // namespace bulkhead
