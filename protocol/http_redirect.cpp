#include "protocol/http_redirect.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "protocol/ascii.hpp"
#include "protocol/printable.hpp"

namespace bulkhead {

namespace {

constexpr std::size_t longest_shown = 200;

/// Some services take a token as a part of the path; those are longer than words are.
constexpr std::size_t longest_segment = 25;

} // namespace

std::string shown_url(const web_url& url) {
  auto result = url.origin();
  for (std::string_view rest = url.path; !rest.empty();) {
    auto segment = rest.substr(0, rest.find('/', 1));
    rest.remove_prefix(segment.size());
    result += segment.size() > longest_segment ? "/…" : segment;
  }
  return printable(shortened(result + (url.query.empty() ? "" : "?…"), longest_shown));
}

bool is_redirect(std::uint32_t status) {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

expected<redirected> follow_redirect(const web_url& from, const std::string& method, bool has_body,
                                     std::uint32_t status, std::string_view location) {
  auto to = resolve_reference(from, location, "the redirect");
  if (!to) {
    return tl::unexpected{to.error()};
  }
  if (from.is_https() && !to->is_https()) {
    return fail(errc::denied,
                fmt::format("it redirects to {}, which isn't encrypted", to->origin()));
  }
  redirected result;
  result.foreign = from.origin() != to->origin();
  // As all clients do: only 307 and 308 keep the method of a POST.
  bool same = status == 307 || status == 308 || method == "GET" || method == "HEAD";
  result.method = same ? method : "GET";
  result.keeps_body = same && has_body;
  // Not as a GET either: its answer would be taken for this server's.
  if (result.foreign && (has_body || (method != "GET" && method != "HEAD"))) {
    return fail(errc::denied,
                fmt::format("it redirects to {}, another server, which gets no request that was "
                            "meant for this one; if it is the right one, name it in the "
                            "configuration",
                            to->origin()));
  }
  result.url = std::move(*to);
  return result;
}

bool is_harmless_header(std::string_view name) {
  constexpr std::array<std::string_view, 4> harmless = {"accept", "accept-language", "user-agent",
                                                        "mcp-protocol-version"};
  return std::find(harmless.begin(), harmless.end(), lower_case(name)) != harmless.end();
}

} // namespace bulkhead
