#include "protocol/oauth_token.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "protocol/ascii.hpp"
#include "protocol/oauth_challenge.hpp"
#include "protocol/oauth_document.hpp"
#include "protocol/printable.hpp"

namespace bulkhead {

namespace {

constexpr std::size_t longest_reason = 300;
constexpr std::int64_t longest_lifetime = 10LL * 365 * 24 * 3600;

/// May it stand in a header (RFC 6750, 2.1)?
bool is_header_text(const std::string& token) {
  return !token.empty() &&
         std::all_of(token.begin(), token.end(), [](char c) { return c > 0x20 && c < 0x7f; });
}

std::optional<std::chrono::seconds> lifetime_of(const nlohmann::json& document) {
  auto found = document.find("expires_in");
  if (found == document.end()) {
    return {};
  }
  double seconds = -1;
  if (found->is_number()) {
    seconds = found->get<double>();
  } else if (found->is_string()) {
    // Some servers quote it.
    const auto& text = found->get_ref<const std::string&>();
    auto digits = !text.empty() && text.size() < 12 &&
                  text.find_first_not_of("0123456789") == std::string::npos;
    seconds = digits ? static_cast<double>(std::stoll(text)) : -1;
  }
  if (!(seconds >= 0)) {
    return {};
  }
  return std::chrono::seconds{
      static_cast<std::int64_t>(std::min(seconds, static_cast<double>(longest_lifetime)))};
}

token_failure failure(bool final, errc code, std::string message) {
  return {final, {code, std::move(message)}};
}

/// The answer says that the token is of no more use, rather than that something went wrong.
bool is_final(std::uint32_t status, std::string_view body) {
  if (status != 400 && status != 401 && status != 403) {
    return false;
  }
  auto document = read_oauth_document(body, "an error");
  if (!document) {
    return false;
  }
  auto code = text_member(*document, "error");
  return code == "invalid_grant" || code == "invalid_client" || code == "unauthorized_client";
}

} // namespace

std::string oauth_refusal(std::uint32_t status, std::string_view body) {
  auto document = read_oauth_document(body, "an error");
  auto code = document ? text_member(*document, "error") : std::string{};
  if (code.empty()) {
    return fmt::format("HTTP status {}", status);
  }
  auto detail = text_member(*document, "error_description");
  return printable(shortened(detail.empty() ? code : code + " (" + detail + ")", longest_reason));
}

token_request code_request(const oauth_client& client, const std::string& code,
                           const std::string& redirect_uri, const std::string& verifier,
                           const std::string& resource) {
  return authenticated({{"grant_type", "authorization_code"},
                        {"code", code},
                        {"redirect_uri", redirect_uri},
                        {"code_verifier", verifier},
                        {"resource", resource}},
                       client);
}

token_request refresh_request(const oauth_client& client, const std::string& refresh_token,
                              const std::string& resource) {
  return authenticated(
      {{"grant_type", "refresh_token"}, {"refresh_token", refresh_token}, {"resource", resource}},
      client);
}

token_request revocation_request(const oauth_client& client, const std::string& token,
                                 std::string_view hint) {
  return authenticated({{"token", token}, {"token_type_hint", std::string{hint}}}, client);
}

tl::expected<token_grant, token_failure> read_token_answer(std::uint32_t status,
                                                           std::string_view body) {
  if (status != 200) {
    auto final = is_final(status, body);
    return tl::unexpected{failure(
        final, final ? errc::denied : errc::unavailable,
        fmt::format("the authorization server gives no token: {}", oauth_refusal(status, body)))};
  }
  auto document = read_oauth_document(body, "the authorization server's token answer");
  if (!document) {
    return tl::unexpected{token_failure{false, document.error()}};
  }
  auto type = text_member(*document, "token_type");
  if (lower_case(type) != "bearer") {
    return tl::unexpected{failure(
        false, errc::malformed,
        fmt::format("the authorization server gives a token of type \"{}\", and only Bearer is "
                    "of use",
                    printable(shortened(type, longest_reason))))};
  }
  token_grant result;
  result.access_token = text_member(*document, "access_token");
  result.refresh_token = text_member(*document, "refresh_token");
  result.lifetime = lifetime_of(*document);
  if (auto scope = text_member(*document, "scope"); !scope.empty()) {
    result.scopes = read_scopes(scope);
  }
  if (!is_header_text(result.access_token)) {
    return tl::unexpected{failure(false, errc::malformed,
                                  "the authorization server's token answer has no access_token "
                                  "that a header could hold")};
  }
  return result;
}

} // namespace bulkhead
