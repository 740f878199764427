#include "protocol/http_rules.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "protocol/ascii.hpp"
#include "protocol/json_rpc.hpp"
#include "protocol/json_text.hpp"
#include "protocol/printable.hpp"

namespace bulkhead {

namespace {

using verdict = tl::expected<void, outgoing_answer>;

constexpr std::string_view json_type = "application/json";
constexpr std::string_view stream_type = "text/event-stream";

tl::unexpected<outgoing_answer> refuse(std::uint32_t status, std::string_view message,
                                       std::vector<http_field> more = {}) {
  auto answer = refusal(status, rpc_code::invalid_request, message);
  answer.fields.insert(answer.fields.end(), more.begin(), more.end());
  return tl::unexpected<outgoing_answer>(std::move(answer));
}

std::string_view trim(std::string_view text) {
  constexpr std::string_view blank = " \t";
  auto begin = text.find_first_not_of(blank);
  if (begin == std::string_view::npos) {
    return {};
  }
  return text.substr(begin, text.find_last_not_of(blank) - begin + 1);
}

/// The parts of a list, e.g. of `Accept`; no value that matters here has a comma in quotes.
template <class Each>
bool any_part(std::string_view list, char separator, Each each) {
  while (!list.empty()) {
    auto end = std::min(list.find(separator), list.size());
    if (each(trim(list.substr(0, end)))) {
      return true;
    }
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return false;
}

/// A host without its port; empty when it is no host with an optional port.
std::string_view without_port(std::string_view host) {
  auto colon = host.rfind(':');
  if (host.ends_with(']') || colon == std::string_view::npos) {
    return host;
  }
  auto port = host.substr(colon + 1);
  bool digits = std::all_of(port.begin(), port.end(), [](char c) { return c >= '0' && c <= '9'; });
  return digits && port.size() <= 5 ? host.substr(0, colon) : std::string_view{};
}

bool knows_host(const http_rules& rules, std::string_view host_and_port) {
  auto host = without_port(host_and_port);
  return std::any_of(rules.hosts.begin(), rules.hosts.end(),
                     [&](const std::string& known) { return same_name(known, host); });
}

/// `value` came from anybody: what is shown of it is short, and drives no terminal.
std::string not_named(std::string_view what, std::string_view value, std::string_view header) {
  constexpr std::size_t shown = 100;
  return fmt::format("{} \"{}\" (header {}); if it should be, its host's name belongs into "
                     "\"hosts\" in bulkhead.toml",
                     what, shortened(printable(value), shown), header);
}

verdict check_host(const incoming_request& request, const http_rules& rules) {
  if (request.count("host") != 1) {
    return refuse(400, "a request must have one Host header");
  }
  if (!knows_host(rules, *request.find("host"))) {
    return refuse(403, not_named("this server isn't known as", *request.find("host"), "Host"));
  }
  return {};
}

verdict check_origin(const incoming_request& request, const http_rules& rules) {
  if (request.count("origin") == 0) {
    return {};
  }
  std::string_view origin = *request.find("origin");
  for (std::string_view scheme : {"http://", "https://"}) {
    if (request.count("origin") == 1 && origin.starts_with(scheme) &&
        knows_host(rules, origin.substr(scheme.size()))) {
      return {};
    }
  }
  return refuse(
      403, not_named("this server may not be used by pages of", *request.find("origin"), "Origin"));
}

/// The page that a path leads to; null: none.
const http_page* page_at(std::string_view path, const http_rules& rules) {
  const http_page* found = nullptr;
  for (const auto& page : rules.pages) {
    if (page.path == path) {
      return &page;
    }
    bool below = page.path.ends_with('/') && path.starts_with(page.path);
    if (below && (found == nullptr || page.path.size() > found->path.size())) {
      found = &page;
    }
  }
  return found;
}

/// Does the header accept the type, by name or by a wildcard?
bool accepts(const incoming_request& request, std::string_view type) {
  auto group = std::string{type.substr(0, type.find('/'))} + "/*";
  return std::any_of(request.fields.begin(), request.fields.end(), [&](const http_field& field) {
    return same_name(field.name, "accept") &&
           any_part(field.value, ',', [&](std::string_view part) {
             auto name = trim(part.substr(0, part.find(';')));
             return same_name(name, type) || same_name(name, group) || name == "*/*";
           });
  });
}

/// JSON in UTF-8, which is what JSON is when nothing else is said.
bool is_json_type(std::string_view value) {
  if (!same_name(trim(value.substr(0, value.find(';'))), json_type)) {
    return false;
  }
  auto semicolon = value.find(';');
  return semicolon == std::string_view::npos ||
         !any_part(value.substr(semicolon + 1), ';', [](std::string_view parameter) {
           auto equals = std::min(parameter.find('='), parameter.size());
           auto name = trim(parameter.substr(0, equals));
           auto given = trim(parameter.substr(std::min(equals + 1, parameter.size())));
           return same_name(name, "charset") && !same_name(given, "utf-8") &&
                  !same_name(given, "\"utf-8\"");
         });
}

/// What is common to all bodies.
verdict check_body(const incoming_request& request) {
  if (request.count("content-type") != 1 || !is_json_type(*request.find("content-type"))) {
    return refuse(415, "the body must be application/json in UTF-8");
  }
  const auto* encoding = request.find("content-encoding");
  if (encoding != nullptr && !same_name(*encoding, "identity")) {
    return refuse(415, "the body must not be compressed (Content-Encoding)");
  }
  return {};
}

verdict check_post(const incoming_request& request) {
  if (auto sound = check_body(request); !sound) {
    return sound;
  }
  if (!accepts(request, json_type) || !accepts(request, stream_type)) {
    return refuse(406, "the client must accept both: Accept: application/json, text/event-stream");
  }
  return {};
}

verdict check_method(const incoming_request& request) {
  if (request.method == "POST") {
    return check_post(request);
  }
  if (request.method == "GET") {
    return accepts(request, stream_type)
               ? verdict{}
               : refuse(406, "a GET asks for a stream: Accept: text/event-stream");
  }
  if (request.method == "DELETE") {
    return {};
  }
  return refuse(405, "only POST, and GET and DELETE with a session",
                {{"Allow", "POST, GET, DELETE"}});
}

verdict check_page_method(const incoming_request& request, const http_page& page) {
  auto method = request.method == "HEAD" ? "GET" : std::string_view{request.method};
  if (std::find(page.methods.begin(), page.methods.end(), method) == page.methods.end()) {
    auto names = fmt::format("{}", fmt::join(page.methods, ", "));
    return refuse(405, fmt::format("only {} here", names), {{"Allow", names}});
  }
  return method == "GET" || method == "DELETE" ? verdict{} : check_body(request);
}

} // namespace

bool same_name(std::string_view one, std::string_view other) {
  return std::equal(one.begin(), one.end(), other.begin(), other.end(),
                    [](char a, char b) { return lower_case(a) == lower_case(b); });
}

const std::string* incoming_request::find(std::string_view name) const {
  auto found = std::find_if(fields.begin(), fields.end(),
                            [&](const http_field& field) { return same_name(field.name, name); });
  return found == fields.end() ? nullptr : &found->value;
}

std::size_t incoming_request::count(std::string_view name) const {
  return static_cast<std::size_t>(
      std::count_if(fields.begin(), fields.end(),
                    [&](const http_field& field) { return same_name(field.name, name); }));
}

std::string_view bearer_token(const incoming_request& request) {
  constexpr std::string_view scheme = "Bearer ";
  const auto* given = request.find("authorization");
  std::string_view text = given == nullptr ? std::string_view{} : *given;
  bool one =
      request.count("authorization") == 1 && same_name(text.substr(0, scheme.size()), scheme);
  return one ? trim(text.substr(scheme.size())) : std::string_view{};
}

bool equal_secrets(std::string_view one, std::string_view other) {
  unsigned different = one.size() == other.size() ? 0 : 1;
  for (std::size_t i = 0; i < one.size(); ++i) {
    auto counterpart = i < other.size() ? other[i] : '\0';
    different |= static_cast<unsigned char>(one[i]) ^ static_cast<unsigned char>(counterpart);
  }
  return different == 0;
}

outgoing_answer refusal(std::uint32_t status, int code, std::string_view message,
                        std::string_view id, std::string_view data) {
  outgoing_answer answer;
  answer.status = status;
  answer.fields = {{"Content-Type", std::string{json_type}}};
  if (!id.empty()) {
    answer.body = encode_error(id, code, message, data);
    return answer;
  }
  // An answer to nothing in particular has no id, rather than a null one (2025-11-25, schema
  // "JSONRPCErrorResponse").
  answer.body = fmt::format(R"({{"jsonrpc":"2.0","error":{{"code":{},"message":{}{}{}}}}})", code,
                            json_quote(message), data.empty() ? "" : R"(,"data":)", data);
  return answer;
}

outgoing_answer explain_status(std::uint32_t status) {
  switch (status) {
  case 408:
    return refusal(408, rpc_code::invalid_request, "the request didn't come in time");
  case 413:
    return refusal(413, rpc_code::invalid_request, "the body is over the limit");
  case 414:
    return refusal(414, rpc_code::invalid_request, "the address in the first line is too long");
  case 417:
    return refusal(417, rpc_code::invalid_request,
                   "nothing can be expected (Expect) but 100-continue");
  case 431:
    return refusal(431, rpc_code::invalid_request, "the header is over the limit");
  case 500:
    return refusal(500, rpc_code::internal_error,
                   "the request was lost to a fault of the server's");
  case 503: {
    auto answer =
        refusal(503, rpc_code::internal_error, "too much is going on at once; try again later");
    answer.fields.push_back({"Retry-After", "2"});
    return answer;
  }
  case 505:
    return refusal(505, rpc_code::invalid_request, "this server speaks HTTP/1.1, and 1.0");
  default:
    return refusal(400, rpc_code::invalid_request, "this is no sound HTTP request");
  }
}

tl::expected<std::string, outgoing_answer> check_head(const incoming_request& request,
                                                      const http_rules& rules) {
  if (auto sound = check_host(request, rules); !sound) {
    return tl::unexpected{sound.error()};
  }
  if (auto sound = check_origin(request, rules); !sound) {
    return tl::unexpected{sound.error()};
  }
  auto path = std::string_view{request.target}.substr(0, request.target.find('?'));
  bool is_mcp = !rules.path.empty() && path == rules.path;
  const auto* page = is_mcp ? nullptr : page_at(path, rules);
  tl::expected<std::string, outgoing_answer> principal;
  if (page == nullptr || page->needs_token) {
    principal = rules.authenticate ? rules.authenticate(bearer_token(request)) : "local";
  }
  if (!principal) {
    return principal;
  }
  if (page == nullptr && !is_mcp) {
    return refuse(404, rules.path.empty()
                           ? "there is nothing here"
                           : fmt::format("there is nothing here; MCP is at {}", rules.path));
  }
  auto sound = page == nullptr ? check_method(request) : check_page_method(request, *page);
  if (!sound) {
    return tl::unexpected{sound.error()};
  }
  return principal;
}

} // namespace bulkhead
