#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace bulkhead {

/// The distributed trace that a request is a part of (W3C Trace Context, level 1). We make no spans
/// of our own, so that it is handed on as it came.
struct trace_context {
  std::string parent{}; ///< a sound `traceparent`; empty: there is no trace
  std::string state{};  ///< a `tracestate`, or empty
  friend bool operator==(const trace_context&, const trace_context&) = default;

  /// 32 hex digits, or empty.
  std::string_view trace_id() const;
};

template <class I>
auto inspect(I& f, trace_context& x) {
  return f(x.parent, x.state);
}

/// The context that a `traceparent` and a `tracestate` give. An unusable traceparent is as good as
/// none, and takes its state with it (§3.2, "traceparent Header"); a state that is too long (over
/// 512 bytes) or has other characters than visible ASCII is dropped alone. A later version's
/// traceparent is read, and handed on, as version 00.
trace_context read_trace_context(std::string_view traceparent, std::string_view tracestate);

} // namespace bulkhead
