#pragma once

#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>
#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/ecdsa.h>
#include <openssl/evp.h>
#include <openssl/rsa.h>

#include "protocol/base64.hpp"

/// Keys of an authorization server that exists in a test alone, and what it signs with them.

namespace bulkhead::testing {

using nlohmann::json;

using pkey = std::shared_ptr<EVP_PKEY>;

inline pkey make_rsa(unsigned bits) {
  return {EVP_RSA_gen(bits), EVP_PKEY_free};
}

inline pkey make_ec(const char* curve) {
  return {EVP_EC_gen(curve), EVP_PKEY_free};
}

/// Made once: RSA keys take their time.
inline const pkey& rsa() {
  static const pkey key = make_rsa(2048);
  return key;
}
inline const pkey& other_rsa() {
  static const pkey key = make_rsa(2048);
  return key;
}
inline const pkey& ec() {
  static const pkey key = make_ec("P-256");
  return key;
}

inline std::string number(const pkey& key, const char* name, int bytes = 0) {
  BIGNUM* value = nullptr;
  EVP_PKEY_get_bn_param(key.get(), name, &value);
  std::string result(static_cast<std::size_t>(bytes > 0 ? bytes : BN_num_bytes(value)), '\0');
  BN_bn2binpad(value, reinterpret_cast<unsigned char*>(result.data()),
               static_cast<int>(result.size()));
  BN_free(value);
  return encode_base64url(result);
}

inline json rsa_jwk(const pkey& key, const std::string& id) {
  return {{"kty", "RSA"},
          {"kid", id},
          {"n", number(key, OSSL_PKEY_PARAM_RSA_N)},
          {"e", number(key, OSSL_PKEY_PARAM_RSA_E)}};
}

inline json ec_jwk(const pkey& key, const std::string& id) {
  return {{"kty", "EC"},
          {"crv", "P-256"},
          {"kid", id},
          {"x", number(key, OSSL_PKEY_PARAM_EC_PUB_X, 32)},
          {"y", number(key, OSSL_PKEY_PARAM_EC_PUB_Y, 32)}};
}

inline std::string set_of(std::initializer_list<json> keys) {
  return json{{"keys", std::vector<json>(keys)}}.dump();
}

/// r and s of a DER signature, 32 bytes each (RFC 7518, 3.4).
inline std::string plain_ecdsa(const std::string& der) {
  const auto* at = reinterpret_cast<const unsigned char*>(der.data());
  auto* parts = d2i_ECDSA_SIG(nullptr, &at, static_cast<long>(der.size()));
  std::string result(64, '\0');
  auto* out = reinterpret_cast<unsigned char*>(result.data());
  BN_bn2binpad(ECDSA_SIG_get0_r(parts), out, 32);
  BN_bn2binpad(ECDSA_SIG_get0_s(parts), out + 32, 32);
  ECDSA_SIG_free(parts);
  return result;
}

inline std::string signature(const std::string& text, const pkey& key,
                             const std::string& algorithm) {
  auto* context = EVP_MD_CTX_new();
  EVP_PKEY_CTX* options = nullptr;
  EVP_DigestSignInit(context, &options, EVP_sha256(), nullptr, key.get());
  if (algorithm == "PS256") {
    EVP_PKEY_CTX_set_rsa_padding(options, RSA_PKCS1_PSS_PADDING);
    EVP_PKEY_CTX_set_rsa_pss_saltlen(options, RSA_PSS_SALTLEN_DIGEST);
  }
  std::string result(1024, '\0');
  auto size = result.size();
  EVP_DigestSign(context, reinterpret_cast<unsigned char*>(result.data()), &size,
                 reinterpret_cast<const unsigned char*>(text.data()), text.size());
  EVP_MD_CTX_free(context);
  result.resize(size);
  return algorithm == "ES256" ? plain_ecdsa(result) : result;
}

inline std::string unsigned_part(const std::string& header, const std::string& claims) {
  return encode_base64url(header) + "." + encode_base64url(claims);
}

inline std::string with_signature(const std::string& text, const pkey& key,
                                  const std::string& algorithm) {
  return text + "." + encode_base64url(signature(text, key, algorithm));
}

/// A token whose header has `more`.
inline std::string signed_token(const json& claims, const pkey& key, const std::string& algorithm,
                                const json& more) {
  json header{{"alg", algorithm}};
  header.update(more);
  return with_signature(unsigned_part(header.dump(), claims.dump()), key, algorithm);
}

} // namespace bulkhead::testing
