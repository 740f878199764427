#pragma once

#include <unistd.h>

#include <utility>

namespace bulkhead {

/// Owns a file descriptor.
class unique_descriptor {
public:
  unique_descriptor() = default;
  explicit unique_descriptor(int fd) : fd_{fd} {}
  unique_descriptor(unique_descriptor&& other) noexcept : fd_{std::exchange(other.fd_, -1)} {}
  unique_descriptor& operator=(unique_descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~unique_descriptor() {
    if (fd_ >= 0) {
      ::close(fd_);
    }
  }

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }

private:
  int fd_ = -1;
};

} // namespace bulkhead
