#include "main/blocking_http.hpp"

#include <future>
#include <memory>

#include <caf/all.hpp>

#include "actors/credential_store.hpp"
#include "actors/errors.hpp"

namespace bulkhead {

using namespace std::chrono_literals;

namespace {

constexpr auto exchange_budget = 30s;
constexpr auto pause = 100ms;

using outcome = std::promise<expected<http_response>>;

/// Makes the exchange and ends.
void ask(caf::event_based_actor* self, const http_host_actor& http, const http_request& request,
         std::chrono::seconds budget, const std::shared_ptr<outcome>& result) {
  self->request(http, budget, call_atom::value, request, deadline::at(self->clock().now() + budget))
      .then([result](const http_response& response) { result->set_value(response); },
            [result](const caf::error& reason) {
              result->set_value(tl::unexpected{from_caf(reason, "ask a web server")});
            });
}

} // namespace

bool blocking_http::interrupted() {
  while (auto word = stop_.wait(0ms)) {
    interrupted_ = interrupted_ || *word != 0 || app_.failed();
  }
  return interrupted_;
}

expected<http_response> blocking_http::call(const http_request& request,
                                            std::chrono::seconds budget) {
  auto result = std::make_shared<outcome>();
  auto future = result->get_future();
  auto http = app_.services().http;
  app_.system().spawn([http, request, budget, result](caf::event_based_actor* self) {
    ask(self, http, request, budget, result);
  });
  while (future.wait_for(pause) != std::future_status::ready) {
    if (interrupted()) {
      return fail(errc::cancelled, "interrupted");
    }
  }
  return future.get();
}

oauth_exchange blocking_http::exchange() {
  return [this](const oauth_exchange_request& request) -> expected<oauth_exchange_answer> {
    auto response = call(to_http(request), exchange_budget);
    if (!response) {
      return tl::unexpected{response.error()};
    }
    return oauth_exchange_answer{response->status, response->body};
  };
}

} // namespace bulkhead
