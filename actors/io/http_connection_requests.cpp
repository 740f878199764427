// How a connection takes requests.

#include <algorithm>
#include <limits>
#include <utility>

#include "actors/io/http_connection.hpp"
#include "protocol/http_framing.hpp"
#include "protocol/json_rpc.hpp"

namespace bulkhead::io {

namespace {

namespace http = boost::beast::http;
using boost::system::error_code;

/// What to say to a request that couldn't be read.
std::uint32_t status_of(const error_code& failure) {
  if (failure == http::error::header_limit) {
    return 431;
  }
  if (failure == http::error::bad_version) {
    return 505;
  }
  return failure == http::error::body_limit ? 413 : 400;
}

outgoing_answer too_many_connections() {
  auto answer = refusal(429, rpc_code::internal_error,
                        "too many requests and streams are open at once; end one first, or try "
                        "again later");
  answer.fields.push_back({"Retry-After", "1"});
  return answer;
}

std::string text_of(boost::beast::string_view text) {
  return std::string{text.data(), text.size()};
}

} // namespace

outgoing_answer http_connection::stopping() {
  auto answer = refusal(503, rpc_code::internal_error, "the server is stopping; try again later");
  answer.fields.push_back({"Retry-After", "5"});
  return answer;
}

void http_connection::await_request() {
  keep_alive_ = true;
  head_only_ = false;
  parser_.emplace();
  parser_->header_limit(static_cast<std::uint32_t>(service_->bounds.header));
  parser_->body_limit(service_->bounds.body);
  expect(stage::idle, service_->bounds.idle_time);
  if (winding_up_ && buffer_.size() == 0 && !stream_->has_unread()) {
    linger();
  } else {
    buffer_.size() > 0 ? read_head() : read();
  }
}

void http_connection::read_head() {
  // Empty lines before a request are nothing (RFC 9112, 2.2).
  while (now_ == stage::idle && come().starts_with("\r\n")) {
    buffer_.consume(2);
  }
  if (now_ == stage::idle && (come().empty() || come() == "\r")) {
    read();
    return;
  }
  if (now_ == stage::idle) {
    expect(stage::head, service_->bounds.header_time);
  }
  if (winding_up_) {
    refuse(stopping());
    return;
  }
  const auto& bounds = service_->bounds;
  auto length = length_of_head(come(), {bounds.request_line, bounds.header});
  if (!length) {
    refuse(explain_status(length.error()));
    return;
  }
  if (*length == 0) {
    read();
    return;
  }
  error_code failure;
  buffer_.consume(parser_->put(boost::asio::buffer(buffer_.cdata(), *length), failure));
  if (failure) {
    refuse(explain_status(status_of(failure)));
  } else {
    take_head();
  }
}

void http_connection::take_head() {
  const auto& head = parser_->get();
  keep_alive_ = parser_->keep_alive();
  old_client_ = head.version() < 11;
  request_ = {};
  request_.method = text_of(head.method_string());
  request_.target = text_of(head.target());
  head_only_ = request_.method == "HEAD";
  for (const auto& field : head) {
    request_.fields.push_back({text_of(field.name_string()), text_of(field.value())});
  }
  if (request_.fields.size() > service_->bounds.fields) {
    refuse(explain_status(431));
    return;
  }
  if (auto sound = check_framing(request_, old_client_); !sound) {
    refuse(explain_status(sound.error()));
    return;
  }
  auto principal = check_head(request_, service_->rules);
  if (!principal) {
    refuse(principal.error());
    return;
  }
  principal_ = *principal;
  token_ = bearer_token(request_);
  request_.principal = std::move(*principal);
  if (!charge_to(request_.principal)) {
    refuse(too_many_connections());
    return;
  }
  // What comes without need, and maybe without a token, would cost nobody and hold a connection.
  if (request_.method != "POST" &&
      (parser_->chunked() || parser_->content_length().value_or(0) > 0)) {
    refuse(explain_status(413));
    return;
  }
  if (head_only_) {
    request_.method = "GET";
  }
  expect(stage::body, service_->bounds.body_time);
  parser_->eager(true);
  if (request_.count("expect") > 0 && !old_client_ && !parser_->is_done()) {
    queue({"HTTP/1.1 100 Continue\r\n\r\n", {}});
  }
  read_body();
}

/// From here on the request costs its principal. False: that keeps too many connections busy.
bool http_connection::charge_to(const std::string& principal) {
  auto own = service_->budget_of ? service_->budget_of(principal) : nullptr;
  budget_ = own ? std::move(own) : service_->budget;
  if (!principal.empty()) {
    // Where all are one, there is nobody to leave any to.
    auto all = service_->rules.authenticate ? service_->bounds.connections
                                            : std::numeric_limits<std::size_t>::max();
    place_ = service_->places->take(principal, all, service_->bounds.connections_per_principal);
  }
  return principal.empty() || place_;
}

void http_connection::read_body() {
  error_code failure;
  while (!parser_->is_done() && buffer_.size() > 0 && !failure) {
    buffer_.consume(parser_->put(buffer_.cdata(), failure));
  }
  if (failure && failure != http::error::need_more) {
    refuse(explain_status(status_of(failure)));
    return;
  }
  if (!charge_body()) {
    refuse(explain_status(503));
    return;
  }
  if (parser_->is_done()) {
    hand_over();
    return;
  }
  if (buffer_.size() > service_->bounds.header) {
    // What the parser waits for the end of is a chunk's own header, or the trailer.
    refuse(explain_status(431));
    return;
  }
  // Time is given for what came, not for what was announced.
  auto allowance = service_->bounds.body_time +
                   std::chrono::seconds{body_share_.bytes() / service_->bounds.body_rate};
  auto spent = std::chrono::duration_cast<std::chrono::milliseconds>(
      std::chrono::steady_clock::now() - waits_since_);
  limit(std::max(allowance - spent, std::chrono::milliseconds{0}));
  read();
}

/// Charges what has come of the body. False: there is no room for it; what others need to end what
/// they are at isn't touched.
bool http_connection::charge_body() {
  auto bytes = parser_->get().body().size();
  auto more = bytes > body_share_.bytes() ? bytes - body_share_.bytes() : 0;
  return more == 0 || budget_->take_if_ample(more, body_share_);
}

void http_connection::hand_over() {
  now_ = stage::answering;
  timer_.cancel();
  request_.body = std::move(parser_->get().body());
  ++exchange_;
  status_ = std::make_shared<exchange_status>();
  service_->handle(std::exchange(request_, {}), std::exchange(body_share_, {}), make_reply());
  read();
}

void http_connection::refuse(const outgoing_answer& reason) {
  // What is left of the request isn't read, so that no other one can follow.
  keep_alive_ = false;
  if (parser_) {
    parser_->get().body() = {};
  }
  body_share_.release();
  timer_.cancel();
  ++exchange_;
  status_ = std::make_shared<exchange_status>();
  now_ = stage::finishing;
  send_head(reason, reason.body.size());
  if (!head_only_) {
    // Small, and one a connection: it goes out even if there is no room for anything else.
    queue({reason.body, {}});
  }
}

} // namespace bulkhead::io
