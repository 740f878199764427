#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <utility>

namespace bulkhead {

/// The bytes that the whole process may hold for others: frames, queues, captured output. Whoever
/// is refused must drop or refuse what it wanted to hold. Thread-safe.
class memory_budget : public std::enable_shared_from_this<memory_budget> {
public:
  /// Bytes taken from a budget, given back on destruction. Movable, not copyable.
  class share {
  public:
    share() = default;
    share(share&& other) noexcept
        : owner_{std::move(other.owner_)}, bytes_{std::exchange(other.bytes_, 0)} {}
    share& operator=(share&& other) noexcept {
      if (this != &other) {
        release();
        owner_ = std::move(other.owner_);
        bytes_ = std::exchange(other.bytes_, 0);
      }
      return *this;
    }
    ~share() { release(); }

    std::size_t bytes() const { return bytes_; }

    /// Gives all back.
    void release() {
      if (owner_ && bytes_ > 0) {
        owner_->used_.fetch_sub(bytes_, std::memory_order_relaxed);
      }
      bytes_ = 0;
    }

  private:
    friend class memory_budget;
    share(std::shared_ptr<memory_budget> owner, std::size_t bytes)
        : owner_{std::move(owner)}, bytes_{bytes} {}
    std::shared_ptr<memory_budget> owner_;
    std::size_t bytes_ = 0;
  };

  explicit memory_budget(std::size_t total) : total_{total} {}

  /// Takes `bytes` into `into` (on top of what it holds); false when the budget has not that much.
  bool take(std::size_t bytes, share& into) {
    auto before = used_.load(std::memory_order_relaxed);
    do {
      if (bytes > total_ - before) {
        return false;
      }
    } while (!used_.compare_exchange_weak(before, before + bytes, std::memory_order_relaxed));
    if (!into.owner_) {
      into.owner_ = shared_from_this();
    }
    into.bytes_ += bytes;
    return true;
  }

  std::size_t used() const { return used_.load(std::memory_order_relaxed); }
  std::size_t total() const { return total_; }

private:
  std::size_t total_;
  std::atomic<std::size_t> used_ = 0;
};

} // namespace bulkhead
