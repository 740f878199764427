#include "protocol/mcp_request.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace bulkhead {

namespace {

constexpr std::array<std::string_view, 5> legacy_revisions = {
    "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05", "2024-10-07"};

constexpr std::array<std::string_view, 8> severities = {"debug", "info",     "notice", "warning",
                                                        "error", "critical", "alert",  "emergency"};

constexpr std::string_view version_key = "io.modelcontextprotocol/protocolVersion";
constexpr std::string_view capabilities_key = "io.modelcontextprotocol/clientCapabilities";
constexpr std::string_view client_key = "io.modelcontextprotocol/clientInfo";
constexpr std::string_view log_level_key = "io.modelcontextprotocol/logLevel";

tl::unexpected<rpc_refusal> refuse(std::string message) {
  return tl::unexpected<rpc_refusal>({rpc_code::invalid_params, std::move(message), {}});
}

bool names_modern_keys(const json_outline& meta) {
  return !meta.find(version_key).empty() || !meta.find(capabilities_key).empty() ||
         !meta.find(client_key).empty();
}

bool exists_in_modern_era_only(std::string_view method) {
  return method == "server/discover" || method == "subscriptions/listen";
}

bool is_sound_modern(const json_outline& meta) {
  return decode_json_string(meta.find(version_key)) == modern_revision &&
         is_json_object(meta.find(capabilities_key));
}

bool is_modern(const rpc_message& message, const json_outline& meta) {
  if (message.method == "initialize") {
    return is_sound_modern(meta);
  }
  return names_modern_keys(meta) || exists_in_modern_era_only(message.method);
}

/// Checks the keys that every modern request carries (2026-07-28, basic/index "_meta").
tl::expected<void, rpc_refusal> check_modern_meta(const json_outline& meta) {
  auto version = meta.find(version_key);
  if (version.empty()) {
    return tl::unexpected<rpc_refusal>(missing_protocol_version());
  }
  if (!is_json_string(version)) {
    return refuse(fmt::format("_meta[\"{}\"] must be a string", version_key));
  }
  if (auto requested = decode_json_string(version); requested != modern_revision) {
    return tl::unexpected<rpc_refusal>({rpc_code::unsupported_protocol_version,
                                        "Unsupported protocol version",
                                        fmt::format(R"({{"supported":["{}"],"requested":{}}})",
                                                    modern_revision, json_quote(requested))});
  }
  if (!is_json_object(meta.find(capabilities_key))) {
    return refuse(fmt::format("_meta[\"{}\"] must be an object", capabilities_key));
  }
  if (auto client = meta.find(client_key); !client.empty() && !is_json_object(client)) {
    return refuse(fmt::format("_meta[\"{}\"] must be an object", client_key));
  }
  return {};
}

tl::expected<void, rpc_refusal> read_log_level(const json_outline& meta, mcp_request& into) {
  auto level = meta.find(log_level_key);
  if (level.empty()) {
    return {};
  }
  into.log_level = severity_from_string(decode_json_string(level));
  if (!into.log_level) {
    return refuse(
        fmt::format("_meta[\"{}\"] must be one of {}", log_level_key, fmt::join(severities, ", ")));
  }
  return {};
}

tl::expected<void, rpc_refusal> read_progress_token(const json_outline& meta, mcp_request& into) {
  auto token = meta.find("progressToken");
  if (token.empty()) {
    return {};
  }
  if ((!is_json_string(token) && !is_json_integer(token)) || token.size() > rpc_id_limit) {
    return refuse(fmt::format("_meta.progressToken must be a string or an integer of at most {} "
                              "bytes",
                              rpc_id_limit));
  }
  into.progress_token = token;
  return {};
}

/// As for the headers of that name (2026-07-28, basic, "Trace context"): strings without a prefix,
/// of which an unusable one is as good as none.
trace_context read_trace(const json_outline& meta) {
  auto text = [&](std::string_view name) {
    auto value = meta.find(name);
    return is_json_string(value) ? decode_json_string(value) : std::string{};
  };
  auto parent = text("traceparent");
  return parent.empty() ? trace_context{} : read_trace_context(parent, text("tracestate"));
}

/// The text with U+FFFD in place of each escape of half a surrogate pair.
std::string without_half_pairs(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    auto plain = std::min(text.find('\\'), text.size());
    result += text.substr(0, plain);
    text.remove_prefix(plain);
    if (text.empty()) {
      break;
    }
    auto length = read_json_escape(text, 0).length;
    constexpr std::size_t unicode_escape = 6;
    if (length == 0 && text.substr(1, 1) == "u") {
      result += "\\ufffd";
      length = unicode_escape;
    } else {
      length = std::max<std::size_t>(length, 1);
      result += text.substr(0, length);
    }
    text.remove_prefix(std::min(length, text.size()));
  }
  return result;
}

} // namespace

std::string_view negotiate_revision(std::string_view requested) {
  const auto* known = std::find(legacy_revisions.begin(), legacy_revisions.end(), requested);
  return known == legacy_revisions.end() ? latest_legacy_revision : *known;
}

std::string_view to_string(log_severity severity) {
  return severities[static_cast<std::size_t>(severity)];
}

std::optional<log_severity> severity_from_string(std::string_view name) {
  const auto* known = std::find(severities.begin(), severities.end(), name);
  if (known == severities.end()) {
    return std::nullopt;
  }
  return static_cast<log_severity>(known - severities.begin());
}

json_outline outline_of_part(std::string_view json) {
  constexpr std::size_t unbounded = static_cast<std::size_t>(-1);
  if (!is_json_object(json)) {
    return {};
  }
  auto outline = scan_json(json, {unbounded, unbounded, unbounded});
  return outline ? std::move(*outline) : json_outline{};
}

std::string_view mcp_request::find(std::string_view name) const {
  auto value = params.find(name);
  return value == "null" ? std::string_view{} : value;
}

std::optional<std::string> mcp_request::text(std::string_view name) const {
  auto value = params.find(name);
  if (!is_json_string(value)) {
    return std::nullopt;
  }
  return decode_json_string(value);
}

tl::expected<mcp_request, rpc_refusal> read_mcp_request(const rpc_message& message,
                                                        const scan_limits& bounds) {
  mcp_request request;
  json_outline meta;
  if (!message.params.empty()) {
    // The text has been scanned as part of its message, so that these scans can't fail.
    auto params = scan_json(message.params, bounds);
    if (!params || !params->is_object) {
      return refuse("params must be an object");
    }
    request.params = std::move(*params);
  }
  if (auto text = request.find("_meta"); !text.empty()) {
    auto outline = scan_json(text, bounds);
    if (!outline || !outline->is_object) {
      return refuse("params._meta must be an object");
    }
    meta = std::move(*outline);
  }
  request.modern = is_modern(message, meta);
  if (request.modern) {
    auto sound = check_modern_meta(meta).and_then([&] { return read_log_level(meta, request); });
    if (!sound) {
      return tl::unexpected<rpc_refusal>(std::move(sound.error()));
    }
    request.abilities = meta.find(capabilities_key);
  }
  if (auto sound = read_progress_token(meta, request); !sound) {
    return tl::unexpected<rpc_refusal>(std::move(sound.error()));
  }
  request.trace = read_trace(meta);
  return request;
}

rpc_refusal missing_protocol_version() {
  return {rpc_code::invalid_params,
          fmt::format("params._meta must carry \"{}\" (e.g. \"{}\") and \"{}\"; a client of an "
                      "older revision sends initialize first",
                      version_key, modern_revision, capabilities_key),
          {}};
}

rpc_refusal explain_unreadable(std::string_view text, const error& reason,
                               const scan_limits& bounds, std::string& id) {
  auto outline = scan_json(text, bounds);
  std::string mended;
  if (!outline && outline.error().code == errc::malformed) {
    // JSON's grammar allows half a surrogate pair, and common writers make it of broken text: its
    // sender gets the reason rather than no answer to its id.
    mended = without_half_pairs(text);
    outline = scan_json(mended, bounds);
  }
  if (!outline) {
    auto code = reason.code == errc::too_large ? rpc_code::invalid_request : rpc_code::parse_error;
    return {code, reason.message, {}};
  }
  auto token = outline->find("id");
  if ((is_json_string(token) || is_json_integer(token)) && token.size() <= rpc_id_limit) {
    id = token;
  }
  return {rpc_code::invalid_request, reason.message, {}};
}

} // namespace bulkhead
