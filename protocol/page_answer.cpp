#include "protocol/page_answer.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <embedded/ui.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "protocol/json_text.hpp"
#include "protocol/web_url.hpp"

namespace bulkhead {

namespace {

using json = nlohmann::ordered_json;

/// Nothing but the page's own files is loaded; no script but those runs, not even one that a fault
/// of the page's would write into it (Trusted Types).
constexpr std::string_view page_policy =
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' blob:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'; "
    "require-trusted-types-for 'script'";
constexpr std::string_view closed_policy = "default-src 'none'; frame-ancestors 'none'; sandbox";

/// Arguments of a call in the view of one run; there may be many of them.
constexpr std::size_t shown_arguments = 4'096;

constexpr std::array<std::pair<std::string_view, std::string_view>, 4> file_types = {{
    {".html", "text/html; charset=utf-8"},
    {".css", "text/css; charset=utf-8"},
    {".js", "text/javascript; charset=utf-8"},
    {".svg", "image/svg+xml"},
}};

outgoing_answer guarded(std::uint32_t status, std::string_view type, std::string_view policy,
                        std::string_view caching) {
  outgoing_answer answer;
  answer.status = status;
  answer.fields = {{"Content-Type", std::string{type}},
                   {"Content-Security-Policy", std::string{policy}},
                   {"X-Content-Type-Options", "nosniff"},
                   {"Referrer-Policy", "no-referrer"},
                   {"Cross-Origin-Opener-Policy", "same-origin"},
                   {"Cross-Origin-Resource-Policy", "same-origin"},
                   {"X-Frame-Options", "DENY"},
                   {"Cache-Control", std::string{caching}}};
  return answer;
}

std::string dumped(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

void put_text(json& into, const char* name, const ledger_text& text, std::size_t most) {
  if (text.text) {
    into[name] = text.text->substr(0, most);
  }
}

} // namespace

outgoing_answer page_file(std::string_view name) {
  const auto& all = embedded::ui();
  auto found =
      std::find_if(all.begin(), all.end(), [&](const auto& each) { return each.name == name; });
  auto type = std::find_if(file_types.begin(), file_types.end(),
                           [&](const auto& each) { return name.ends_with(each.first); });
  if (found == all.end() || type == file_types.end()) {
    return page_refusal(404, "there is nothing here");
  }
  auto answer = guarded(200, type->second, page_policy, "no-cache");
  answer.body = found->content;
  return answer;
}

outgoing_answer page_moved() {
  auto answer = guarded(308, "text/plain; charset=utf-8", closed_policy, "no-cache");
  answer.fields.push_back({"Location", "ui/"});
  answer.body = "The page is at ui/\n";
  return answer;
}

outgoing_answer page_json(std::string body, std::uint32_t status) {
  auto answer = guarded(status, "application/json", closed_policy, "no-store");
  answer.body = std::move(body);
  return answer;
}

outgoing_answer page_refusal(std::uint32_t status, std::string_view message,
                             std::uint32_t retry_after) {
  auto answer =
      page_json(fmt::format(R"({{"error":{{"message":{}}}}})", json_quote(message)), status);
  if (retry_after > 0) {
    answer.fields.push_back({"Retry-After", std::to_string(retry_after)});
  }
  return answer;
}

outgoing_answer page_stream_head() {
  auto answer = guarded(200, "text/event-stream", closed_policy, "no-store");
  answer.fields.push_back({"X-Accel-Buffering", "no"});
  return answer;
}

std::string page_event(std::string_view name, std::string_view data) {
  return fmt::format("event: {}\ndata: {}\n\n", name, data);
}

outgoing_answer page_download_head(std::string_view name) {
  auto answer = guarded(200, "application/octet-stream", closed_policy, "no-store");
  // RFC 6266, 4.1 with the notation of RFC 8187, 3.2.
  std::string encoded;
  for (const char c : name) {
    bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                 c == '-' || c == '.' || c == '_' || c == '~';
    encoded += plain ? std::string{c} : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  answer.fields.push_back({"Content-Disposition", "attachment; filename*=UTF-8''" + encoded});
  return answer;
}

std::string to_json(const shown_run& run) {
  json made = {{"run", run.run},         {"at", run.at},
               {"client", run.client},   {"clientVersion", run.client_version},
               {"servers", run.servers}, {"session", run.session}};
  if (run.ended_at == 0) {
    made.update({{"stage", run.stage}, {"calls", run.calls}, {"written", run.written}});
  } else {
    made.update({{"endedAt", run.ended_at},
                 {"outcome", run.outcome},
                 {"error", run.error},
                 {"durationMs", run.duration_ms}});
  }
  return dumped(made);
}

std::string runs_json(const std::vector<shown_run>& running, const std::vector<shown_run>& ended) {
  auto texts = [](const std::vector<shown_run>& runs) {
    std::vector<std::string> result;
    std::transform(runs.begin(), runs.end(), std::back_inserter(result),
                   [](const shown_run& run) { return to_json(run); });
    return json_list(result);
  };
  return json_object({{"running", texts(running)}, {"ended", texts(ended)}});
}

std::string to_json(const std::vector<run_minute>& minutes) {
  auto made = json::array();
  for (const auto& each : minutes) {
    made.push_back({{"at", each.at},
                    {"counts", each.counts},
                    {"median", each.median_ms},
                    {"high", each.high_ms}});
  }
  return dumped(made);
}

std::string to_json(const ledger_run& run, bool texts) {
  json made = {{"run", run.run},
               {"at", run.at},
               {"client", run.client},
               {"clientVersion", run.client_version},
               {"session", run.session},
               {"outcome", run.outcome},
               {"error", run.error},
               {"durationMs", run.duration_ms},
               {"calls", run.calls},
               {"servers", run.servers},
               {"codeBytes", run.code.bytes},
               {"codeSha256", run.code.sha256}};
  if (texts) {
    put_text(made, "code", run.code, ledger_text_limit);
  }
  return dumped(made);
}

std::string to_json(const ledger_call& call, bool texts) {
  json made = {{"run", call.run},
               {"at", call.at},
               {"server", call.server},
               {"tool", call.tool},
               {"outcome", call.outcome},
               {"rule", call.rule},
               {"durationUs", call.duration_us},
               {"argumentsBytes", call.arguments.bytes},
               {"resultBytes", call.result_bytes}};
  if (texts) {
    put_text(made, "arguments", call.arguments, shown_arguments);
  }
  return dumped(made);
}

std::string ledger_json(const ledger_page& page, const ledger_query& query) {
  std::vector<std::string> records;
  for (const auto& each : page.runs) {
    records.push_back(to_json(each, false));
  }
  for (const auto& each : page.calls) {
    records.push_back(to_json(each, false));
  }
  return json_object({{"kept", "true"},
                      {"kind", query.calls ? R"("calls")" : R"("runs")"},
                      {"records", json_list(records)},
                      {"more", page.more ? "true" : "false"},
                      {"until", std::to_string(query.until)}});
}

std::string no_ledger_json(const ledger_query& query) {
  return json_object({{"kept", "false"},
                      {"kind", query.calls ? R"("calls")" : R"("runs")"},
                      {"records", "[]"},
                      {"more", "false"},
                      {"until", std::to_string(query.until)}});
}

std::string json_object(const std::vector<std::pair<std::string_view, std::string>>& members) {
  std::string result = "{";
  for (const auto& [name, text] : members) {
    result += fmt::format("{}{}:{}", result.size() > 1 ? "," : "", json_quote(name), text);
  }
  return result + "}";
}

std::string json_list(const std::vector<std::string>& texts) {
  return fmt::format("[{}]", fmt::join(texts, ","));
}

} // namespace bulkhead
