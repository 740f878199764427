#include "protocol/log_line.hpp"

#include <iterator>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "protocol/json_text.hpp"
#include "protocol/printable.hpp"

namespace bulkhead {

std::string encode_log_line(const log_line& line) {
  using namespace std::chrono;
  auto whole = floor<seconds>(line.time);
  std::string text;
  fmt::format_to(std::back_inserter(text), R"({{"time":"{:%Y-%m-%dT%H:%M:%S}.{:03}Z")",
                 fmt::gmtime(system_clock::to_time_t(whole)),
                 duration_cast<milliseconds>(line.time - whole).count());
  auto add = [&](std::string_view name, std::string_view value) {
    if (!value.empty()) {
      text += ',';
      append_json_string(text, name);
      text += ':';
      append_json_string(text, value);
    }
  };
  add("level", line.level);
  add("message", line.message);
  add("tenant", line.tenant);
  add("run", line.ids.run);
  add("request", line.ids.request);
  add("trace_id", line.ids.trace);
  text += "}\n";
  // Also what JSON allows in strings may drive a terminal.
  return printable(text);
}

} // namespace bulkhead
