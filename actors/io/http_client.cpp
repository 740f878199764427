#include "actors/io/http_client.hpp"

#include <utility>

#include <boost/asio/post.hpp>
#include <fmt/format.h>

#include "actors/io/http_transfer.hpp"

namespace bulkhead::io {

http_client::http_client(io_thread& io, environment_lookup variable)
    : variable_{std::move(variable)}, driver_{curl_driver::make(
                                          io, [this](CURL* transfer, CURLcode outcome) {
                                            over(transfer, outcome);
                                          })} {}

http_client::~http_client() {
  for (const auto& [id, transfer] : transfers_) {
    driver_->remove(transfer->handle());
  }
}

void http_client::begin(exchange_id id, bulkhead::http_request request,
                        std::optional<std::chrono::steady_clock::time_point> due,
                        std::uint64_t credit, http_events to) {
  if (transfers_.size() >= most_exchanges) {
    to.end({errc::overloaded, fmt::format("over {} HTTP requests are on their way; try again later",
                                          most_exchanges)});
    return;
  }
  if (transfers_.contains(id)) {
    to.end({errc::internal, "the id of an HTTP exchange is in use"});
    return;
  }
  auto& made = transfers_[id];
  made = std::make_unique<http_transfer>(id, std::move(request), due, credit, std::move(to));
  if (auto failure = start(*made)) {
    finish(id, std::move(*failure));
  }
}

std::optional<error> http_client::start(http_transfer& transfer) {
  if (auto ready = transfer.prepare(variable_); !ready) {
    return ready.error();
  }
  if (!driver_->add(transfer.handle())) {
    return error{errc::internal, "libcurl doesn't take an HTTP request"};
  }
  return std::nullopt;
}

void http_client::add_credit(exchange_id id, std::uint64_t bytes) {
  if (auto found = transfers_.find(id); found != transfers_.end()) {
    found->second->add_credit(bytes);
  }
}

void http_client::cancel(exchange_id id) {
  if (auto found = transfers_.find(id); found != transfers_.end()) {
    driver_->remove(found->second->handle());
    transfers_.erase(found);
  }
}

void http_client::over(CURL* handle, CURLcode outcome) {
  void* mark = nullptr;
  curl_easy_getinfo(handle, CURLINFO_PRIVATE, &mark);
  auto& transfer = *static_cast<http_transfer*>(mark);
  if (outcome != CURLE_OK) {
    finish(transfer.id(), transfer.explain(outcome));
    return;
  }
  if (!transfer.wants_redirect()) {
    finish(transfer.id(), {errc::none, {}});
    return;
  }
  if (auto next = transfer.redirect(); !next) {
    finish(transfer.id(), next.error());
  } else if (auto failure = start(transfer)) {
    finish(transfer.id(), std::move(*failure));
  }
}

void http_client::finish(exchange_id id, error reason) {
  auto transfer = transfers_.extract(id);
  transfer.mapped()->to().end(std::move(reason));
}

} // namespace bulkhead::io
