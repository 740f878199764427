#pragma once

#include <coroutine>
#include <exception>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <utility>

namespace bulkhead {

/// A chain of requests of one actor, written as a coroutine. It starts when awaited, belongs to
/// whoever awaits it and is resumed on the actor's thread only, by the answer it waits for.
///
/// A coroutine takes its parameters by value, or refers to what outlives the actor's tasks.
template <class T>
class task;

namespace detail {

struct task_promise_base {
  struct resume_awaiter {
    bool await_ready() noexcept { return false; }
    template <class Promise>
    std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> ended) noexcept {
      auto next = ended.promise().continuation;
      return next ? next : std::noop_coroutine();
    }
    void await_resume() noexcept {}
  };

  std::suspend_always initial_suspend() noexcept { return {}; }
  resume_awaiter final_suspend() noexcept { return {}; }
  void unhandled_exception() { failure = std::current_exception(); }

  std::coroutine_handle<> continuation;
  std::exception_ptr failure;
};

template <class T>
struct task_promise : task_promise_base {
  task<T> get_return_object();
  template <class U>
  void return_value(U&& result) {
    value.emplace(std::forward<U>(result));
  }
  T take() {
    if (failure) {
      std::rethrow_exception(failure);
    }
    return std::move(*value);
  }
  std::optional<T> value;
};

template <>
struct task_promise<void> : task_promise_base {
  task<void> get_return_object();
  void return_void() {}
  void take() {
    if (failure) {
      std::rethrow_exception(failure);
    }
  }
};

} // namespace detail

template <class T>
class [[nodiscard]] task {
public:
  using promise_type = detail::task_promise<T>;
  using handle = std::coroutine_handle<promise_type>;

  explicit task(handle coroutine) : coroutine_{coroutine} {}
  task(task&& other) noexcept : coroutine_{std::exchange(other.coroutine_, nullptr)} {}
  task& operator=(task&&) = delete;
  ~task() {
    if (coroutine_) {
      coroutine_.destroy();
    }
  }

  bool done() const { return coroutine_.done(); }
  void start() { coroutine_.resume(); }

  bool await_ready() { return false; }
  std::coroutine_handle<> await_suspend(std::coroutine_handle<> awaiting) {
    coroutine_.promise().continuation = awaiting;
    return coroutine_;
  }
  T await_resume() { return coroutine_.promise().take(); }

private:
  handle coroutine_;
};

namespace detail {

template <class T>
task<T> task_promise<T>::get_return_object() {
  return task<T>{std::coroutine_handle<task_promise>::from_promise(*this)};
}

inline task<void> task_promise<void>::get_return_object() {
  return task<void>{std::coroutine_handle<task_promise>::from_promise(*this)};
}

} // namespace detail

/// Awaits a function that reports its result through a callback, at once or later. The callback may
/// also be dropped; then the awaiting task never goes on and is destroyed with its `task_set`.
template <class T>
class completion {
public:
  using callback = std::function<void(T)>;

  explicit completion(std::function<void(callback)> start) : start_{std::move(start)} {}

  bool await_ready() { return false; }
  bool await_suspend(std::coroutine_handle<> awaiting) {
    // The shared state outlives this object should the callback be called late and twice.
    auto state = state_;
    start_([state](T value) {
      if (state->value) {
        return;
      }
      state->value.emplace(std::move(value));
      if (auto waiting = std::exchange(state->waiting, nullptr)) {
        waiting.resume();
      }
    });
    if (state->value) {
      return false;
    }
    state->waiting = awaiting;
    return true;
  }
  T await_resume() { return std::move(*state_->value); }

private:
  struct shared {
    std::optional<T> value;
    std::coroutine_handle<> waiting;
  };
  std::function<void(callback)> start_;
  std::shared_ptr<shared> state_ = std::make_shared<shared>();
};

/// The tasks an actor has begun; its state owns them, so that they end with it.
class task_set {
public:
  /// Runs `work` up to its first wait. It must not throw.
  void start(task<void> work) {
    running_.remove_if([](const auto& each) { return each.done(); });
    running_.push_back(std::move(work));
    running_.back().start();
  }

private:
  std::list<task<void>> running_;
};

} // namespace bulkhead
