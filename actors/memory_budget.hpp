#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <utility>

namespace bulkhead {

/// The bytes that the whole process, or one run within it, may hold for others: frames, queues,
/// captured output, answers. Whoever is refused must drop or refuse what it wanted to hold.
/// Thread-safe.
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
        owner_->give_back(bytes_);
      }
      bytes_ = 0;
    }

  private:
    friend class memory_budget;
    std::shared_ptr<memory_budget> owner_;
    std::size_t bytes_ = 0;
  };

  /// Of `total` bytes the last `reserve` are for what can't be refused without ending a run (see
  /// `take_if_ample`). What is taken here is taken from `parent` too.
  explicit memory_budget(std::size_t total, std::size_t reserve = 0,
                         std::shared_ptr<memory_budget> parent = nullptr)
      : total_{total}, reserve_{reserve}, parent_{std::move(parent)} {}

  /// Takes `bytes` into `into` (on top of what it holds); false when the budget has not that much.
  bool take(std::size_t bytes, share& into) { return take(bytes, into, true); }

  /// As `take`, but leaves the reserve alone: for what is politely refused when there is no room.
  bool take_if_ample(std::size_t bytes, share& into) { return take(bytes, into, false); }

  /// For a call's arguments: small ones may use the reserve, so that a run that fills the rest
  /// doesn't keep others from calling.
  bool take_for_call(std::size_t bytes, share& into) { return take(bytes, into, bytes <= small); }

  /// What counts as small, in bytes: bounded by its number alone.
  static constexpr std::size_t small = std::size_t{32} * 1024;

  std::size_t used() const { return used_.load(std::memory_order_relaxed); }
  std::size_t total() const { return total_; }

private:
  bool take(std::size_t bytes, share& into, bool all) {
    if (!reserve_bytes(bytes, all)) {
      return false;
    }
    if (!into.owner_) {
      into.owner_ = shared_from_this();
    }
    into.bytes_ += bytes;
    return true;
  }

  bool reserve_bytes(std::size_t bytes, bool all) {
    const auto most = all ? total_ : total_ - reserve_;
    auto before = used_.load(std::memory_order_relaxed);
    do {
      if (before > most || bytes > most - before) {
        return false;
      }
    } while (!used_.compare_exchange_weak(before, before + bytes, std::memory_order_relaxed));
    if (parent_ && !parent_->reserve_bytes(bytes, all)) {
      used_.fetch_sub(bytes, std::memory_order_relaxed);
      return false;
    }
    return true;
  }

  void give_back(std::size_t bytes) {
    used_.fetch_sub(bytes, std::memory_order_relaxed);
    if (parent_) {
      parent_->give_back(bytes);
    }
  }

  std::size_t total_;
  std::size_t reserve_;
  std::shared_ptr<memory_budget> parent_;
  std::atomic<std::size_t> used_ = 0;
};

/// Where an answer's bytes are charged from the moment it is made until whoever asked is done with
/// it: the asker makes the room and sends it along, the answerer takes from it before it answers.
class answer_room {
public:
  answer_room() = default;
  explicit answer_room(std::shared_ptr<memory_budget> budget)
      : budget_{std::move(budget)}, share_{std::make_shared<memory_budget::share>()} {}

  /// False when there is no room for an answer of that many bytes.
  bool take(std::size_t bytes) const {
    return !budget_ || bytes <= memory_budget::small || budget_->take_if_ample(bytes, *share_);
  }

  bool charged() const { return share_ && share_->bytes() > 0; }

  friend bool operator==(const answer_room&, const answer_room&) = default;

private:
  std::shared_ptr<memory_budget> budget_;
  std::shared_ptr<memory_budget::share> share_;
};

} // namespace bulkhead
