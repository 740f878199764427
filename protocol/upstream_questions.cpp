#include "protocol/upstream_questions.hpp"

#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "protocol/ascii.hpp"
#include "protocol/json_rpc.hpp"
#include "protocol/mcp_client_protocol.hpp"

namespace bulkhead::upstream {

namespace {

constexpr std::string_view elicitation = "elicitation/create";
constexpr std::string_view sampling = "sampling/createMessage";

/// Notes that are longer say nothing that would be shown.
constexpr std::size_t longest_note = 64 * kibibyte;

/// As sampling has it for a request that its user rejected (2025-11-25, client/sampling "Error
/// Handling").
constexpr int rejected_by_user = -1;

/// What is read here has been scanned as part of a message, whose limits were tighter.
std::optional<json_outline> outline_of(std::string_view json) {
  constexpr auto unbounded = static_cast<std::size_t>(-1);
  auto outline = scan_json(json, {unbounded, unbounded, unbounded});
  return outline && outline->is_object ? std::optional{std::move(*outline)} : std::nullopt;
}

rpc_refusal invalid(std::string message) {
  return {rpc_code::invalid_params, std::move(message), {}};
}

/// Why the client can't be asked, if so.
std::optional<rpc_refusal> refuse(std::string_view method, std::string_view params,
                                  const client_abilities& declared) {
  bool any = method == sampling ? declared.sampling
                                : declared.elicitation_form || declared.elicitation_url;
  if (!any) {
    return rpc_refusal{rpc_code::method_not_found,
                       fmt::format("the client can't be asked \"{}\", and didn't declare that it "
                                   "could",
                                   method),
                       {}};
  }
  if (auto lacking = lacking_capability(declared, method, params); !lacking.empty()) {
    return invalid(fmt::format("{}: the client didn't declare {}", method, lacking));
  }
  return std::nullopt;
}

bool is_web_page(std::string_view url) {
  auto text = lower_case(url.substr(0, 8));
  return text.starts_with("https://") || text.starts_with("http://");
}

/// Members that don't go beyond this connection.
bool stays_here(std::string_view key) {
  return key == "_meta" || key == "task" || key == "includeContext";
}

double number_of(const nlohmann::json& note, const char* key) {
  auto found = note.find(key);
  return found != note.end() && found->is_number() ? found->get<double>() : std::nan("");
}

nlohmann::json parse_note(std::string_view params) {
  if (params.size() > longest_note) {
    return {};
  }
  auto note = nlohmann::json::parse(params.begin(), params.end(), nullptr, false);
  return note.is_object() ? std::move(note) : nlohmann::json{};
}

std::string text_of(const nlohmann::json& note, const char* key) {
  auto found = note.find(key);
  return found != note.end() && found->is_string() ? found->get<std::string>() : std::string{};
}

expected<input_request> read_input_request(const json_member& member) {
  auto outline = outline_of(member.value);
  auto method = outline ? decode_json_string(outline->find("method")) : std::string{};
  if (method.empty()) {
    return fail(errc::server_failed,
                fmt::format("it asks for input \"{}\" by no request", printable(member.key, 128)));
  }
  return input_request{member.key, std::move(method), outline->find("params")};
}

} // namespace

bool is_for_client(std::string_view method) {
  return method == elicitation || method == sampling;
}

tl::expected<question, rpc_refusal> read_question(std::string_view method, std::string_view params,
                                                  const client_abilities& declared,
                                                  const limits& bounds) {
  if (auto refusal = refuse(method, params, declared)) {
    return tl::unexpected(std::move(*refusal));
  }
  auto outline = outline_of(params);
  if (!outline) {
    return tl::unexpected(invalid(fmt::format("{}: params must be an object", method)));
  }
  if (params.size() > bounds.question) {
    return tl::unexpected(invalid(fmt::format("{}: the params have {} bytes; the limit is {}",
                                              method, params.size(), bounds.question)));
  }
  if (method == elicitation) {
    auto mode = outline->find("mode");
    auto name = mode.empty() ? "form" : decode_json_string(mode);
    if (name != "form" && name != "url") {
      return tl::unexpected(invalid(fmt::format("{}: unknown mode", method)));
    }
    if (name == "url" && !is_web_page(decode_json_string(outline->find("url")))) {
      return tl::unexpected(invalid(fmt::format("{}: url must be http or https", method)));
    }
  }
  question result{std::string{method}, "{"};
  for (const auto& member : outline->members) {
    if (!stays_here(member.key)) {
      result.params += result.params.size() > 1 ? "," : "";
      append_json_string(result.params, member.key);
      result.params += ':';
      append_json_line(result.params, member.value);
    }
  }
  result.params += '}';
  return result;
}

rpc_refusal unanswered(std::string_view method, const error& reason) {
  auto code = rpc_code::internal_error;
  switch (reason.code) {
  case errc::unavailable:
    code = rpc_code::method_not_found;
    break;
  case errc::denied:
    code = rejected_by_user;
    break;
  case errc::invalid_argument:
  case errc::too_large:
    code = rpc_code::invalid_params;
    break;
  default:
    break;
  }
  return {code, fmt::format("{}: {}", method, reason.message), {}};
}

expected<std::optional<input_required>> read_call_result(bool modern, std::string_view result,
                                                         const limits& bounds) {
  if (!is_json_object(result)) {
    return fail(errc::server_failed, "the result is no JSON object");
  }
  // The cheap search spares nearly every result a second scan.
  if (!modern || result.find("input_required") == std::string_view::npos) {
    return std::nullopt;
  }
  auto outline = outline_of(result);
  if (!outline || decode_json_string(outline->find("resultType")) != "input_required") {
    return std::nullopt;
  }
  input_required needed;
  needed.state = outline->find("requestState");
  if (!needed.state.empty() && !is_json_string(needed.state)) {
    return fail(errc::server_failed,
                "it asks for more input with a requestState that is no string");
  }
  if (auto requests = outline_of(outline->find("inputRequests"))) {
    if (requests->members.size() > bounds.call_questions) {
      return fail(errc::server_failed,
                  fmt::format("it asks for {} inputs at once; the limit is {}",
                              requests->members.size(), bounds.call_questions));
    }
    for (const auto& member : requests->members) {
      auto request = read_input_request(member);
      if (!request) {
        return tl::unexpected(std::move(request.error()));
      }
      needed.requests.push_back(std::move(*request));
    }
  }
  if (needed.requests.empty() && needed.state.empty()) {
    return fail(errc::server_failed, "it asks for more input and doesn't say which");
  }
  return needed;
}

std::string roots_result(const std::vector<std::string>& uris) {
  std::string result = R"({"roots":[)";
  std::string_view before = R"({"uri":)";
  for (const auto& uri : uris) {
    result += before;
    before = R"(,{"uri":)";
    append_json_string(result, uri);
    result += '}';
  }
  return result + "]}";
}

std::optional<progress_note> read_progress(std::string_view params, const secret_filter& secrets) {
  auto note = parse_note(params);
  auto token = note.find("progressToken");
  auto progress = number_of(note, "progress");
  if (token == note.end() || !token->is_number_unsigned() || !std::isfinite(progress)) {
    return std::nullopt;
  }
  auto total = number_of(note, "total");
  return progress_note{token->get<std::uint64_t>(), progress,
                       std::isfinite(total) && total > 0 ? total : 0,
                       printable(secrets.hide(text_of(note, "message")), 256)};
}

std::string read_log(std::string_view params, const secret_filter& secrets) {
  auto note = parse_note(params);
  if (note.is_null()) {
    return "a message that can't be read, or is too long";
  }
  auto data = note.find("data");
  std::string text;
  if (data != note.end()) {
    text = data->is_string() ? data->get<std::string>()
                             : data->dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  }
  auto logger = printable(text_of(note, "logger"), 64);
  auto line = fmt::format("{}{}{}: {}", printable(text_of(note, "level"), 16),
                          logger.empty() ? "" : " ", logger, text);
  return printable(secrets.hide(std::move(line)), 512);
}

} // namespace bulkhead::upstream
