#pragma once

#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include "actors/io/tls_context.hpp"
#include "tests/io/io_support.hpp"

namespace bulkhead::testing {

/// Makes certificates of "localhost" that sign themselves, in a folder of their own.
class certificates {
public:
  /// `serial` tells one from another; it ends in `days`, and has ended if that is negative.
  tls_files make(int serial, int days = 2) {
    auto name = folder_ / std::to_string(serial);
    tls_files files{name + ".crt", name + ".key"};
    std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key{EVP_EC_gen("P-256"), EVP_PKEY_free};
    std::unique_ptr<X509, decltype(&X509_free)> made{X509_new(), X509_free};
    X509_set_version(made.get(), X509_VERSION_3);
    ASN1_INTEGER_set(X509_get_serialNumber(made.get()), serial);
    constexpr long day = 24L * 60 * 60;
    X509_gmtime_adj(X509_getm_notBefore(made.get()), -7 * day);
    X509_gmtime_adj(X509_getm_notAfter(made.get()), days * day);
    X509_set_pubkey(made.get(), key.get());
    auto* subject = X509_get_subject_name(made.get());
    X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC,
                               reinterpret_cast<const unsigned char*>("localhost"), -1, -1, 0);
    X509_set_issuer_name(made.get(), subject);
    auto* names = X509V3_EXT_conf_nid(nullptr, nullptr, NID_subject_alt_name, "DNS:localhost");
    X509_add_ext(made.get(), names, -1);
    X509_EXTENSION_free(names);
    if (X509_sign(made.get(), key.get(), EVP_sha256()) == 0) {
      throw std::runtime_error{"no certificate could be made"};
    }
    write(files.certificate, [&](std::FILE* to) { PEM_write_X509(to, made.get()); });
    write(files.key, [&](std::FILE* to) { write_key(to, key.get(), nullptr); });
    write(encrypted(files).key,
          [&](std::FILE* to) { write_key(to, key.get(), EVP_aes_128_cbc()); });
    return files;
  }

  /// The same with a key that a password protects.
  static tls_files encrypted(const tls_files& files) {
    return {files.certificate, files.key + ".encrypted"};
  }

  /// A file that is no certificate and no key.
  std::string nonsense() {
    auto path = folder_ / "nonsense";
    write(path, [](std::FILE* to) { std::fputs("nonsense\n", to); });
    return path;
  }

private:
  static void write_key(std::FILE* to, EVP_PKEY* key, const EVP_CIPHER* cipher) {
    PEM_write_PKCS8PrivateKey(to, key, cipher, cipher == nullptr ? nullptr : "secret",
                              cipher == nullptr ? 0 : 6, nullptr, nullptr);
  }

  template <class Write>
  static void write(const std::string& path, Write write) {
    std::unique_ptr<std::FILE, decltype(&std::fclose)> file{std::fopen(path.c_str(), "w"),
                                                            std::fclose};
    write(file.get());
  }

  temporary_folder folder_;
};

} // namespace bulkhead::testing
