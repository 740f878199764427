#include "protocol/oauth_request.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/sha.h>

#include "protocol/base64.hpp"
#include "protocol/oauth_challenge.hpp"
#include "protocol/printable.hpp"

namespace bulkhead {

namespace {

constexpr std::size_t longest_reason = 300;
constexpr std::size_t longest_code = 8192;

std::string sha256(std::string_view text) {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest{};
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data());
  return {digest.begin(), digest.end()};
}

bool same_secret(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

std::string field(const std::map<std::string, std::string>& fields, const char* name) {
  auto found = fields.find(name);
  return found != fields.end() ? found->second : std::string{};
}

/// RFC 9207, 2.4, with the comparison of one that wasn't announced, as MCP demands.
expected<void> check_issuer(const authorization_attempt& attempt,
                            const std::map<std::string, std::string>& fields) {
  auto named = fields.find("iss");
  if (named == fields.end()) {
    if (attempt.sends_issuer) {
      return fail(errc::denied, fmt::format("the answer doesn't say which authorization server it "
                                            "comes from, though {} says that its answers do; it "
                                            "isn't used",
                                            attempt.issuer));
    }
    return {};
  }
  if (named->second != attempt.issuer) {
    return fail(errc::denied,
                fmt::format("the answer comes from another authorization server than the one "
                            "that was asked, {}; it isn't used",
                            attempt.issuer));
  }
  return {};
}

} // namespace

std::string code_challenge(std::string_view verifier) {
  return encode_base64url(sha256(verifier));
}

std::vector<std::string> wanted_scopes(const std::vector<std::string>& named,
                                       const std::vector<std::string>& challenged,
                                       const std::vector<std::string>& supported,
                                       const std::vector<std::string>& granted,
                                       const issuer_metadata& issuer) {
  const auto& first = !named.empty() ? named : !challenged.empty() ? challenged : supported;
  auto result = joined_scopes(first, granted);
  const std::string offline = "offline_access";
  if (!result.empty() &&
      std::find(issuer.scopes.begin(), issuer.scopes.end(), offline) != issuer.scopes.end()) {
    result = joined_scopes(std::move(result), {offline});
  }
  return result;
}

std::string authorization_url(const authorization_attempt& attempt, const issuer_metadata& issuer,
                              const oauth_client& client, const std::vector<std::string>& scopes,
                              const std::string& resource) {
  form_fields fields{{"response_type", "code"},
                     {"client_id", client.id},
                     {"redirect_uri", attempt.redirect_uri},
                     {"state", attempt.state},
                     {"code_challenge", code_challenge(attempt.verifier)},
                     {"code_challenge_method", "S256"},
                     {"resource", resource}};
  if (!scopes.empty()) {
    fields.emplace_back("scope", scope_text(scopes));
  }
  // An endpoint may have a query of its own (RFC 6749, 3.1), but no fragment.
  auto url = issuer.authorization_endpoint.substr(0, issuer.authorization_endpoint.find('#'));
  return url + (url.find('?') == std::string::npos ? "?" : "&") + encode_form(fields);
}

bool has_state(const authorization_attempt& attempt, std::string_view query) {
  auto fields = decode_form(query);
  return fields && same_secret(field(*fields, "state"), attempt.state);
}

expected<std::string> read_authorization_answer(const authorization_attempt& attempt,
                                                std::string_view query) {
  auto fields = decode_form(query);
  if (!fields) {
    return fail(errc::malformed, fmt::format("the authorization server's answer can't be read: {}",
                                             fields.error().message));
  }
  if (!same_secret(field(*fields, "state"), attempt.state)) {
    return fail(errc::denied, "the answer isn't one to this login: its state differs");
  }
  if (auto sound = check_issuer(attempt, *fields); !sound) {
    return tl::unexpected{sound.error()};
  }
  if (auto refusal = field(*fields, "error"); !refusal.empty()) {
    auto detail = field(*fields, "error_description");
    return fail(
        errc::denied,
        fmt::format("the authorization server {} refuses: {}", attempt.issuer,
                    printable(shortened(detail.empty() ? refusal : refusal + " (" + detail + ")",
                                        longest_reason))));
  }
  auto code = field(*fields, "code");
  if (code.empty() || code.size() > longest_code) {
    return fail(errc::malformed, "the authorization server's answer has no code");
  }
  return code;
}

} // namespace bulkhead
