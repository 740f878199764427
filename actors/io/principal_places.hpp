#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>

#include "protocol/fair_share.hpp"

namespace bulkhead::io {

/// How many connections each principal keeps busy, so that none has all of a listener's. For one
/// thread, on which places are given back, too.
class principal_places : public std::enable_shared_from_this<principal_places> {
public:
  /// A principal's until the last copy is gone.
  using place = std::shared_ptr<const std::string>;

  /// Null if the principal has its share of `total` already, or `most`.
  place take(const std::string& principal, std::size_t total, std::size_t most) {
    auto found = taken_.find(principal);
    if (!fair_share(found == taken_.end() ? 0 : found->second, all_, total, most)) {
      return nullptr;
    }
    ++taken_[principal];
    ++all_;
    return {new std::string{principal}, [self = shared_from_this()](const std::string* name) {
              self->give_back(*name);
              delete name;
            }};
  }

private:
  void give_back(const std::string& principal) {
    auto found = taken_.find(principal);
    --all_;
    if (--found->second == 0) {
      taken_.erase(found);
    }
  }

  std::map<std::string, std::size_t> taken_;
  std::size_t all_ = 0;
};

} // namespace bulkhead::io
