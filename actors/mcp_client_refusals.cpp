#include "actors/mcp_client.hpp"

#include <utility>

#include <caf/all.hpp>
#include <fmt/format.h>

/// What a client learns from whoever speaks for its server, instead of an answer.
namespace bulkhead {

void mcp_client_state::refused(std::uint64_t request, error reason) {
  if (current == phase::stopping) {
    return;
  }
  reason.message = secrets.hide(std::move(reason.message));
  if (request != 0 && request == discover_request) {
    discover_request = 0;
    if (current == phase::probing) {
      start_failed(initialize_failure.value_or(
          error{reason.code, fmt::format("start {}: {}", subject(), reason.message)}));
    }
  } else if (request != 0 && request == initialize_request) {
    initialize_request = 0;
    error failure{reason.code, fmt::format("start {}: {}", subject(), reason.message)};
    if (late_modern) {
      become_ready(upstream::era::modern, std::move(*late_modern));
    } else if (discover_request != 0) {
      initialize_failure = std::move(failure);
      current = phase::probing; // the late answer decides
    } else {
      start_failed(failure);
    }
  } else if (list && request == list->request) {
    fail_listing(std::move(reason));
  } else {
    fail_call(request, reason.code, reason.message);
    send_waiting();
  }
}

/// The server wants a new beginning; whoever waited has been answered, and the next request makes
/// it.
void mcp_client_state::connection_ended() {
  error reason{
      errc::server_failed,
      fmt::format("{} ended the connection; it is made again with the next request", subject())};
  note_failure(reason);
  abandon(reason);
  process_is_gone();
}

} // namespace bulkhead
