#include "protocol/ledger_report.hpp"

#include <chrono>
#include <ctime>
#include <vector>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "protocol/printable.hpp"
#include "protocol/time_text.hpp"

namespace bulkhead {

namespace {

using json = nlohmann::ordered_json;

/// Digits of an id that tell it from others at a glance; `--run` takes them.
constexpr std::size_t short_id = 12;

/// One field of a line: nothing in it ends the line or moves the cursor.
std::string field(std::string_view text) {
  std::string result;
  for (char c : printable(text)) {
    result += c == '\n' ? std::string{"\\n"} : c == '\t' ? std::string{"\\t"} : std::string{c};
  }
  return result.empty() ? "-" : result;
}

/// RFC 4180. A spreadsheet takes what begins like a formula for one, so that such a cell gets an
/// apostrophe before it.
std::string cell(std::string_view text) {
  std::string result = "\"";
  if (!text.empty() && std::string_view{"=+-@\t\r"}.find(text.front()) != std::string_view::npos) {
    result += '\'';
  }
  for (char c : printable(text)) {
    result += c == '"' ? std::string{"\"\""} : std::string{c};
  }
  return result + "\"";
}

std::string dumped(const json& value) {
  return printable(value.dump(-1, ' ', false, json::error_handler_t::replace));
}

json text_or_null(const ledger_text& text) {
  return text.text ? json(*text.text) : json(nullptr);
}

std::string duration_text(double milliseconds) {
  return milliseconds < 10'000 ? fmt::format("{:.1f} ms", milliseconds)
                               : fmt::format("{:.1f} s", milliseconds / 1000);
}

} // namespace

expected<std::int64_t> parse_since(std::string_view text, std::int64_t now) {
  auto refused = fail(errc::invalid_argument,
                      fmt::format("\"{}\" is no time: expected 90s, 30m, 2h, 7d or 2w, or a date "
                                  "such as 2026-11-30 or 2026-11-30T17:05 (UTC)",
                                  printable(text.substr(0, 40))));
  if (auto span = parse_span(text)) {
    return now - std::chrono::milliseconds{*span}.count();
  }
  auto moment = parse_moment(text);
  return moment
             ? expected<std::int64_t>{std::chrono::milliseconds{moment->time_since_epoch()}.count()}
             : refused;
}

std::string time_text(std::int64_t milliseconds) {
  auto seconds = static_cast<std::time_t>(milliseconds / 1000);
  std::tm time{};
  gmtime_r(&seconds, &time);
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z", time, milliseconds % 1000);
}

std::string ledger_head(bool calls, ledger_format format) {
  if (format == ledger_format::json) {
    return {};
  }
  if (format == ledger_format::csv) {
    return calls ? "time,run,owner,server,tool,outcome,rule,duration_us,arguments_bytes,"
                   "arguments_sha256,result_bytes,arguments\r\n"
                 : "time,run,owner,client,client_version,session,outcome,error,duration_ms,calls,"
                   "servers,code_bytes,code_sha256,code\r\n";
  }
  return calls ? "time                      run           outcome           took        "
                 "arguments → result bytes  tool\n"
               : "time                      run           outcome           took        calls  "
                 "client, servers\n";
}

std::string to_text(const ledger_run& run, ledger_format format) {
  auto servers = fmt::format("{}", fmt::join(run.servers, " "));
  switch (format) {
  case ledger_format::json:
    return dumped({{"time", time_text(run.at)},
                   {"run", run.run},
                   {"owner", run.owner},
                   {"client", run.client},
                   {"clientVersion", run.client_version},
                   {"session", run.session},
                   {"outcome", run.outcome},
                   {"error", run.error},
                   {"durationMs", run.duration_ms},
                   {"calls", run.calls},
                   {"servers", run.servers},
                   {"codeBytes", run.code.bytes},
                   {"codeSha256", run.code.sha256},
                   {"code", text_or_null(run.code)}});
  case ledger_format::csv:
    return fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{},{}\r\n", time_text(run.at),
                       cell(run.run), cell(run.owner), cell(run.client), cell(run.client_version),
                       cell(run.session), cell(run.outcome), cell(run.error), run.duration_ms,
                       run.calls, cell(servers), run.code.bytes, run.code.sha256,
                       cell(run.code.text.value_or("")));
  case ledger_format::text:
    break;
  }
  return fmt::format(
      "{}  {:12}  {:16}  {:10}  {:5}  {}{}{}\n", time_text(run.at),
      field(run.run.substr(0, short_id)), field(run.outcome),
      duration_text(static_cast<double>(run.duration_ms)), run.calls,
      field(run.client + (run.client_version.empty() ? "" : " ") + run.client_version),
      servers.empty() ? "" : "; " + field(servers),
      run.error.empty() ? "" : "; " + field(run.error));
}

std::string to_text(const ledger_call& call, ledger_format format) {
  switch (format) {
  case ledger_format::json:
    return dumped({{"time", time_text(call.at)},
                   {"run", call.run},
                   {"owner", call.owner},
                   {"server", call.server},
                   {"tool", call.tool},
                   {"outcome", call.outcome},
                   {"rule", call.rule},
                   {"durationUs", call.duration_us},
                   {"argumentsBytes", call.arguments.bytes},
                   {"argumentsSha256", call.arguments.sha256},
                   {"resultBytes", call.result_bytes},
                   {"arguments", text_or_null(call.arguments)}});
  case ledger_format::csv:
    return fmt::format("{},{},{},{},{},{},{},{},{},{},{},{}\r\n", time_text(call.at),
                       cell(call.run), cell(call.owner), cell(call.server), cell(call.tool),
                       cell(call.outcome), cell(call.rule), call.duration_us, call.arguments.bytes,
                       call.arguments.sha256, call.result_bytes,
                       cell(call.arguments.text.value_or("")));
  case ledger_format::text:
    break;
  }
  return fmt::format("{}  {:12}  {:16}  {:10}  {:>9} → {:<12}  {}/{}{}\n", time_text(call.at),
                     field(call.run.substr(0, short_id)), field(call.outcome),
                     duration_text(static_cast<double>(call.duration_us) / 1000),
                     call.arguments.bytes, call.result_bytes, field(call.server), field(call.tool),
                     call.rule.empty() ? "" : "; " + field(call.rule));
}

} // namespace bulkhead
