#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "protocol/error.hpp"
#include "protocol/web_url.hpp"

namespace bulkhead {

/// A URL in texts for people: shortened, without its query and long parts of its path, which may be
/// secrets.
std::string shown_url(const web_url& url);

/// Is it a status (RFC 9110, 15.4) whose Location a client follows?
bool is_redirect(std::uint32_t status);

/// What becomes of a request that is redirected (RFC 9110, 15.4).
struct redirected {
  web_url url;
  std::string method;
  bool keeps_body = false;
  /// Another origin: it gets no headers but those that say what kind of answer is wanted, since any
  /// other may hold a secret.
  bool foreign = false;
};

/// Errors: denied for a redirect that would carry the request's body to another origin, or leave
/// https; invalid_argument for a location that is no URL.
expected<redirected> follow_redirect(const web_url& from, const std::string& method, bool has_body,
                                     std::uint32_t status, std::string_view location);

/// May a request to another origin than it was meant for carry the header of that name?
bool is_harmless_header(std::string_view name);

} // namespace bulkhead
