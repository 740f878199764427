#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>

namespace bulkhead::io {

/// How many connections each principal keeps busy, so that none has all of a listener's. For one
/// thread, on which places are given back, too.
class principal_places : public std::enable_shared_from_this<principal_places> {
public:
  /// A principal's until the last copy is gone.
  using place = std::shared_ptr<const std::string>;

  /// Null if the principal has `most` already.
  place take(const std::string& principal, std::size_t most) {
    auto found = taken_.try_emplace(principal, 0).first;
    if (found->second >= most) {
      return nullptr;
    }
    ++found->second;
    return {new std::string{principal}, [self = shared_from_this()](const std::string* name) {
              self->give_back(*name);
              delete name;
            }};
  }

private:
  void give_back(const std::string& principal) {
    auto found = taken_.find(principal);
    if (--found->second == 0) {
      taken_.erase(found);
    }
  }

  std::map<std::string, std::size_t> taken_;
};

} // namespace bulkhead::io
