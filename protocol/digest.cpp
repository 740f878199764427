#include "protocol/digest.hpp"

#include <array>

#include <fmt/format.h>
#include <openssl/evp.h>

namespace bulkhead {

std::string hex_digest(std::string_view bytes) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned length = 0;
  EVP_Digest(bytes.data(), bytes.size(), digest.data(), &length, EVP_sha256(), nullptr);
  std::string text;
  text.reserve(2 * length);
  for (unsigned i = 0; i < length; ++i) {
    fmt::format_to(std::back_inserter(text), "{:02x}", digest[i]);
  }
  return text;
}

} // namespace bulkhead
