#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "protocol/error.hpp"

namespace bulkhead {

/// An absolute http or https URL in parts. Scheme and host are in lower case; a host that is an
/// IPv4 address in an odd spelling (0x7f.1) is written in the usual one.
struct web_url {
  std::string scheme; ///< "http" or "https"
  std::string host;   ///< an IPv6 address stands in brackets
  std::uint16_t port = 0;
  std::string path;  ///< starts with a slash
  std::string query; ///< without the question mark

  /// Scheme, host and, unless it is the scheme's own, port: what decides who gets a credential.
  std::string origin() const;
  std::string text() const;
  bool is_https() const { return scheme == "https"; }
  /// Is the host this machine, by its name (localhost and names below it) or as 127.0.0.0/8 or ::1?
  bool is_loopback() const;
  /// Is the host loopback, or an address of a private network (RFC 1918, RFC 4193, link-local,
  /// RFC 6598)? Names other than localhost are taken for public.
  bool is_private() const;
  friend bool operator==(const web_url&, const web_url&) = default;
};

/// Bytes of a URL that comes from the network or from a user.
inline constexpr std::size_t longest_url = 8192;

/// Reads an absolute URL. `what` names it in errors. Errors: invalid_argument for one that is too
/// long, isn't http or https, has no host or one with percent signs, a user name, or a character
/// that no URL may hold.
/// A fragment is dropped.
expected<web_url> read_web_url(std::string_view text, std::string_view what);

/// A reference (RFC 3986, 4.1) as it stands in an answer, relative to the URL that was asked.
/// Errors: invalid_argument, as for `read_web_url`; `what` names it.
expected<web_url> resolve_reference(const web_url& base, std::string_view reference,
                                    std::string_view what);

/// Names and values as application/x-www-form-urlencoded, in order; also a URL's query.
using form_fields = std::vector<std::pair<std::string, std::string>>;
std::string encode_form(const form_fields& fields);

/// One name or value in that encoding.
std::string encode_form_text(std::string_view text);

/// The fields of a query. Errors: malformed for a bad percent sign, for more than 32 fields, and
/// for a name that stands there twice (RFC 6749, 3.1).
expected<std::map<std::string, std::string>> decode_form(std::string_view text);

} // namespace bulkhead
