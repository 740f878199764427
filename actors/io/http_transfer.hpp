#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <curl/curl.h>

#include "actors/io/http_client.hpp"
#include "protocol/web_url.hpp"

namespace bulkhead::io {

/// One exchange of an `http_client`, a hop of it at a time: the libcurl handle, what was sent, and
/// what came.
class http_transfer {
public:
  using time_point = std::chrono::steady_clock::time_point;

  http_transfer(exchange_id id, bulkhead::http_request request, std::optional<time_point> due,
                std::uint64_t credit, http_events to);

  exchange_id id() const { return id_; }
  CURL* handle() const { return handle_.get(); }
  const http_events& to() const { return to_; }

  /// Makes the handle for the next hop. Errors: invalid_argument, denied, internal.
  expected<void> prepare(const environment_lookup& variable);

  void add_credit(std::uint64_t bytes);

  /// The hop ended well with a redirect that is to be followed.
  bool wants_redirect() const { return following_ && head_over_; }

  /// Turns the request into the next hop's. Errors: denied, invalid_argument.
  expected<void> redirect();

  /// Why the hop that ended with `outcome` failed.
  error explain(CURLcode outcome) const;

private:
  struct handle_deleter {
    void operator()(CURL* handle) const { curl_easy_cleanup(handle); }
  };
  struct list_deleter {
    void operator()(curl_slist* list) const { curl_slist_free_all(list); }
  };

  expected<void> check_headers() const;
  expected<void> choose_way(const environment_lookup& variable);
  bool set_headers();
  void set_method();
  void set_limits();
  std::string what() const;
  std::size_t take_header(std::string_view line);
  void take_status_line(std::string_view line);
  std::size_t end_head();
  std::size_t take_body(std::string_view bytes);
  std::size_t give_body(char* into, std::size_t room);

  static std::size_t on_header(char* bytes, std::size_t, std::size_t count, void* self);
  static std::size_t on_body(char* bytes, std::size_t, std::size_t count, void* self);
  static std::size_t on_read(char* into, std::size_t, std::size_t room, void* self);
  static int on_rewind(void* self, curl_off_t offset, int origin);
  static curl_socket_t on_socket(void* self, curlsocktype, curl_sockaddr* address);

  exchange_id id_;
  bulkhead::http_request request_;
  std::optional<time_point> due_;
  http_events to_;
  web_url url_;
  std::int64_t credit_;
  bool paused_ = false;

  // This hop.
  std::unique_ptr<CURL, handle_deleter> handle_;
  std::unique_ptr<curl_slist, list_deleter> lines_;
  std::array<char, CURL_ERROR_SIZE> complaint_{};
  std::size_t sent_ = 0; ///< bytes of the body that libcurl took
  std::uint32_t status_ = 0;
  std::vector<http_header> headers_;
  std::size_t head_bytes_ = 0; ///< of all heads of the hop, informational ones included
  std::size_t head_lines_ = 0;
  bool head_over_ = false;
  bool following_ = false;
  bool only_public_addresses_ = false; ///< of connections that are made now
  std::string refused_address_;
  std::uint64_t body_bytes_ = 0;
  std::string too_large_; ///< what of the answer was
  std::uint32_t hops_ = 0;
};

} // namespace bulkhead::io
