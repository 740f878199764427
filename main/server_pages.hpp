#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "actors/health.hpp"
#include "actors/http_front_end.hpp"
#include "actors/io/http_listener.hpp"
#include "actors/web_page.hpp"
#include "main/shared_process.hpp"
#include "main/tenants.hpp"
#include "protocol/http_rules.hpp"

namespace bulkhead {

/// How the server for several tenants is, for whatever watches over it. `stopping` and `more`, what
/// else counts for whether it is ready, are called on the actor's thread; `more` may be null.
health_actor spawn_health(shared_process& process, const tenants& all,
                          std::function<bool()> stopping,
                          std::function<std::vector<health_check>()> more = {});

/// What clients find besides MCP: the web page, where to get tokens (RFC 9728), and /healthz and
/// /readyz, which say no more than whether.
std::vector<http_page> client_pages();

/// Who answers clients.
struct client_services {
  http_front_end_actor mcp;
  health_actor health;
  web_page_actor page;
  // Called on the I/O thread:
  std::function<bool()> has_page;
  std::function<outgoing_answer(std::string_view path)> metadata; ///< of the protected resource
};
/// Gives requests to whom they are for.
io::http_request_handler client_requests(const client_services& to);

/// What operators find: the same, with all there is to say, and /metrics.
std::vector<http_page> operator_pages();
io::http_request_handler operator_requests(shared_process& process, const health_actor& health);

} // namespace bulkhead
