#include "protocol/key_ring.hpp"

#include <utility>

namespace bulkhead {

std::shared_ptr<const key_ring::contents> key_ring::get() const {
  std::lock_guard guard{mutex_};
  return contents_;
}

void key_ring::set_resource(std::optional<oauth_resource> resource) {
  std::lock_guard guard{mutex_};
  auto next = std::make_shared<contents>();
  for (const auto& [issuer, keys] : contents_->keys) {
    const auto* before = contents_->resource ? contents_->resource->find(issuer) : nullptr;
    const auto* after = resource ? resource->find(issuer) : nullptr;
    if (before != nullptr && after != nullptr && before->jwks_uri == after->jwks_uri) {
      next->keys.emplace(issuer, keys);
    }
  }
  next->resource = std::move(resource);
  contents_ = std::move(next);
}

void key_ring::set_keys(const std::string& issuer, key_set_ptr keys) {
  std::lock_guard guard{mutex_};
  if (!contents_->resource || contents_->resource->find(issuer) == nullptr) {
    return;
  }
  auto next = std::make_shared<contents>(*contents_);
  next->keys[issuer] = std::move(keys);
  next->failures.erase(issuer);
  contents_ = std::move(next);
}

void key_ring::set_failure(const std::string& issuer, std::string why) {
  std::lock_guard guard{mutex_};
  if (!contents_->resource || contents_->resource->find(issuer) == nullptr) {
    return;
  }
  auto next = std::make_shared<contents>(*contents_);
  next->failures[issuer] = std::move(why);
  contents_ = std::move(next);
}

key_ring::asking key_ring::ask(const std::string& issuer, clock::time_point now) {
  std::lock_guard guard{mutex_};
  auto [found, first] = fetches_.try_emplace(issuer);
  auto& each = found->second;
  if (each.is_running(now)) {
    return asking::under_way;
  }
  if (!first && now - each.begun < fetch_interval) {
    return asking::too_soon;
  }
  each = {true, now};
  return asking::begin;
}

bool key_ring::begin(const std::string& issuer, clock::time_point now) {
  std::lock_guard guard{mutex_};
  auto& each = fetches_[issuer];
  if (each.is_running(now)) {
    return false;
  }
  each = {true, now};
  return true;
}

void key_ring::end(const std::string& issuer) {
  std::lock_guard guard{mutex_};
  fetches_[issuer].under_way = false;
}

} // namespace bulkhead
