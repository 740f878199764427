#include "protocol/http_mcp.hpp"
#include "protocol/http_rules.hpp"
#include "protocol/json_scan.hpp"
#include "protocol/mcp_request.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace bulkhead::fuzz {

namespace {

constexpr scan_limits bounds{65536, 16, 1000};

std::string_view trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) {
    text.remove_prefix(1);
  }
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) {
    text.remove_suffix(1);
  }
  return text;
}

/// `METHOD TARGET`, lines of the header, an empty line, the body: HTTP, but for the CRs and the
/// version, which are the listener's affair.
incoming_request read_request(std::string_view input) {
  incoming_request request;
  request.method = take_until(input, ' ');
  request.target = take_until(input, '\n');
  while (!input.empty()) {
    auto line = take_until(input, '\n');
    if (line.empty()) {
      break;
    }
    auto name = take_until(line, ':');
    request.fields.push_back({std::string{name}, std::string{trim(line)}});
  }
  request.body = input;
  return request;
}

void check_answer(const outgoing_answer& answer) {
  require(answer.status >= 400 && answer.status < 500, "a refusal is the client's fault");
  auto body = scan_json(answer.body, {answer.body.size()});
  require(body && is_json_object(body->find("error")), "a refusal is an error of JSON-RPC");
  for (const auto& field : answer.fields) {
    require(field.value.find_first_of("\r\n") == std::string::npos, "a field is one line");
  }
}

void check_head(const incoming_request& request) {
  http_rules rules;
  rules.authenticate = [](std::string_view token) -> tl::expected<std::string, outgoing_answer> {
    if (equal_secrets(token, "secret")) {
      return "ann";
    }
    return tl::unexpected{refusal(401, -32600, "the token isn't valid")};
  };
  auto principal = bulkhead::check_head(request, rules);
  if (!principal) {
    check_answer(principal.error());
    return;
  }
  require(*principal == "ann", "who has the token is who asks");
  require(request.count("authorization") == 1 && request.count("host") == 1,
          "what decides is said once");
  require(request.find("authorization")->ends_with("secret"), "the token was there");
}

std::vector<mirrored_parameter> mirrored(std::string_view tool) {
  return tool == "weather" ? std::vector<mirrored_parameter>{{"city", "City"}, {"days", "Days"}}
                           : std::vector<mirrored_parameter>{};
}

void check_post(const incoming_request& request) {
  auto posted = read_post(request, bounds, mirrored);
  if (!posted) {
    require(posted.error().status == 400, "an unfit body is a bad request");
    check_answer(posted.error());
    return;
  }
  auto message = parse_rpc(request.body, bounds);
  require(message && message->kind == posted->kind && message->method == posted->method,
          "what is posted is what the body says");
  require(posted->id.empty() != (posted->kind == rpc_kind::request), "requests alone have an id");
  require(!posted->initializes || posted->method == "initialize", "initialize opens a session");
  if (posted->of == posted_message::era::modern) {
    const auto* version = request.find("mcp-protocol-version");
    require(version != nullptr && decode_header_value(*version) == modern_revision,
            "the modern era is named in the header");
  }
}

void check_field(const std::string& value) {
  auto text = decode_header_value(value);
  require(!text || text->size() <= value.size(), "decoding makes no text longer");
  if (auto place = read_event_place(value)) {
    require(read_event_place(to_string(*place)) == place, "an event's place survives");
  }
}

} // namespace

void http_post_target(std::string_view input) {
  auto request = read_request(input);
  check_head(request);
  check_post(request);
  if (auto era = check_session_era(request); !era) {
    check_answer(era.error());
  }
  for (const auto& field : request.fields) {
    check_field(field.value);
  }
}

} // namespace bulkhead::fuzz
