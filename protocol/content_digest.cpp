#include "protocol/content_digest.hpp"

#include <array>

#include <fmt/format.h>
#include <openssl/sha.h>

namespace bulkhead {

std::string content_digest(std::string_view text) {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest{};
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data());
  std::string result;
  for (auto byte : digest) {
    result += fmt::format("{:02x}", byte);
  }
  return result;
}

std::string session_name(std::string_view handle) {
  return content_digest(handle).substr(0, 16);
}

} // namespace bulkhead
