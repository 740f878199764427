// What the log gets of a run.

#include <fmt/format.h>

#include "actors/invocation.hpp"
#include "actors/log_scope.hpp"
#include "protocol/printable.hpp"

namespace bulkhead {

namespace {

/// Bytes of a name or an id that its client chose.
constexpr std::size_t most_shown = 100;

} // namespace

log_ids invocation_state::ids() const {
  return {request.id, request.asked_as, request.trace.trace_id()};
}

/// Clients' runs are of interest to whoever operates the server; who runs a file sees for himself.
spdlog::level::level_enum invocation_state::run_log_level() const {
  return request.asked_as.empty() ? spdlog::level::debug : spdlog::level::info;
}

void invocation_state::log_begin() const {
  const auto& log = *context.env->log;
  if (!log.should_log(run_log_level())) {
    return;
  }
  log_scope about{ids()};
  context.env->log->log(
      run_log_level(), "run {} begins{}{}{}", request.id,
      request.client.empty() ? std::string{}
                             : fmt::format(", for {}", shortened(request.client, most_shown)),
      request.session ? ", in a session" : "",
      request.trace.parent.empty() ? std::string{}
                                   : fmt::format(", trace {}", request.trace.trace_id()));
}

void invocation_state::log_end() const {
  const auto& log = *context.env->log;
  if (!log.should_log(run_log_level())) {
    return;
  }
  log_scope about{ids()};
  context.env->log->log(run_log_level(), "run {} ended: {} after {} ms{}", request.id,
                        to_string(answer.status), answer.duration_ms,
                        answer.failure ? fmt::format(", {}", to_string(answer.failure->code))
                                       : std::string{});
}

/// What was left out of the log while the code ran.
void invocation_state::log_tallies() const {
  log_scope about{ids()};
  if (calls_refused > most_lines) {
    context.env->log->info("run {}: {} unusable calls refused in all", request.id, calls_refused);
  }
  if (calls_repeated > most_lines) {
    context.env->log->warn("run {}: {} calls with an id in use in all", request.id, calls_repeated);
  }
}

} // namespace bulkhead
