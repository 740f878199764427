#include "protocol/trace_context.hpp"

#include <algorithm>

namespace bulkhead {

namespace {

// VERSION "-" TRACE-ID "-" PARENT-ID "-" FLAGS
constexpr std::size_t trace_id_at = 3;
constexpr std::size_t trace_id_length = 32;
constexpr std::size_t parent_id_at = 36;
constexpr std::size_t parent_id_length = 16;
constexpr std::size_t flags_at = 53;
constexpr std::size_t traceparent_length = 55;
/// What everybody has to hand on, at the least (§3.3.1.5).
constexpr std::size_t most_state = 512;

/// Upper case isn't allowed.
bool is_lower_hex(std::string_view text) {
  return text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

bool is_all_zero(std::string_view text) {
  return text.find_first_not_of('0') == std::string_view::npos;
}

bool is_sound(std::string_view text) {
  auto version = text.substr(0, 2);
  if (text.size() < traceparent_length || !is_lower_hex(version) || version == "ff" ||
      (version == "00" && text.size() != traceparent_length) ||
      (text.size() > traceparent_length && text[traceparent_length] != '-')) {
    return false;
  }
  auto trace_id = text.substr(trace_id_at, trace_id_length);
  auto parent_id = text.substr(parent_id_at, parent_id_length);
  return text[trace_id_at - 1] == '-' && text[parent_id_at - 1] == '-' &&
         text[flags_at - 1] == '-' && is_lower_hex(trace_id) && !is_all_zero(trace_id) &&
         is_lower_hex(parent_id) && !is_all_zero(parent_id) &&
         is_lower_hex(text.substr(flags_at, 2));
}

} // namespace

std::string_view trace_context::trace_id() const {
  return parent.empty() ? std::string_view{}
                        : std::string_view{parent}.substr(trace_id_at, trace_id_length);
}

trace_context read_trace_context(std::string_view traceparent, std::string_view tracestate) {
  trace_context result;
  if (!is_sound(traceparent)) {
    return result;
  }
  result.parent = traceparent.substr(0, traceparent_length);
  if (!traceparent.starts_with("00")) {
    // Of a later version's flags only "sampled", the last bit, is known to mean what it does now.
    bool sampled =
        std::string_view{"13579bdf"}.find(traceparent[flags_at + 1]) != std::string_view::npos;
    result.parent.replace(0, 2, "00");
    result.parent.replace(flags_at, 2, sampled ? "01" : "00");
  }
  bool visible = std::all_of(tracestate.begin(), tracestate.end(),
                             [](char c) { return c >= ' ' && c <= '~'; });
  if (visible && tracestate.size() <= most_state) {
    result.state = tracestate;
  }
  return result;
}

} // namespace bulkhead
