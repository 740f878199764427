#pragma once

#include <sys/types.h>

#include <utility>

#include <unistd.h>

#include "actors/messages.hpp"
#include "protocol/error.hpp"

namespace bulkhead::io {

/// A descriptor that is closed with its holder.
class descriptor {
public:
  descriptor() = default;
  explicit descriptor(int fd) : fd_{fd} {}
  descriptor(descriptor&& other) noexcept : fd_{std::exchange(other.fd_, -1)} {}
  descriptor& operator=(descriptor&& other) noexcept {
    reset(std::exchange(other.fd_, -1));
    return *this;
  }
  ~descriptor() { reset(); }

  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }
  void reset(int fd = -1) {
    if (fd_ >= 0) {
      ::close(fd_);
    }
    fd_ = fd;
  }

private:
  int fd_ = -1;
};

/// A process just started and our ends of its pipes.
struct spawned_process {
  pid_t pid = -1;
  descriptor pidfd;
  descriptor in;
  descriptor out;
  descriptor err;
};

/// Starts `spec` with pipes for its stdio, in a new process group, with no signal blocked or
/// ignored and no descriptor of ours inherited. Errors: see `child_process::start`.
expected<spawned_process> spawn(const process_spec& spec);

} // namespace bulkhead::io
