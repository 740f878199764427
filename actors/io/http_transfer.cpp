#include "actors/io/http_transfer.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <sys/socket.h>

#include "protocol/ascii.hpp"
#include "protocol/http_redirect.hpp"
#include "protocol/http_token.hpp"
#include "protocol/limits.hpp"
#include "protocol/printable.hpp"
#include "protocol/public_address.hpp"

namespace bulkhead::io {

namespace {

using namespace std::chrono_literals;

/// A host that doesn't answer by then isn't there.
constexpr auto connect_time = 20s;

/// Of the heads of an answer, those of informational answers and trailers included.
constexpr std::size_t longest_head = 64 * kibibyte;
constexpr std::size_t most_head_lines = 256;

/// Of a redirect's body, which nobody reads.
constexpr std::size_t longest_redirect = 64 * kibibyte;

bool is_field_value(std::string_view text) {
  using namespace std::string_view_literals;
  return text.find_first_of("\r\n\0"sv) == std::string_view::npos;
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view space = " \t\r\n";
  auto start = text.find_first_not_of(space);
  return start == std::string_view::npos
             ? std::string_view{}
             : text.substr(start, text.find_last_not_of(space) - start + 1);
}

/// The proxy that libcurl would take for the scheme; empty: none.
std::string proxy_for(const web_url& url, const environment_lookup& variable) {
  // HTTP_PROXY isn't looked at: see CURLOPT_PROXY(3).
  for (const char* name : {url.is_https() ? "https_proxy" : "http_proxy",
                           url.is_https() ? "HTTPS_PROXY" : "", "all_proxy", "ALL_PROXY"}) {
    auto value = *name == '\0' ? std::nullopt : variable(name);
    if (value && !value->empty()) {
      return *value;
    }
  }
  return {};
}

bool is_public(const sockaddr& address) {
  if (address.sa_family == AF_INET) {
    sockaddr_in v4{};
    std::memcpy(&v4, &address, sizeof v4);
    return is_public_ipv4(ntohl(v4.sin_addr.s_addr));
  }
  if (address.sa_family == AF_INET6) {
    sockaddr_in6 v6{};
    std::memcpy(&v6, &address, sizeof v6);
    std::array<std::uint8_t, 16> bytes{};
    std::memcpy(bytes.data(), &v6.sin6_addr, bytes.size());
    return is_public_ipv6(bytes);
  }
  return false;
}

std::string numeric(const sockaddr& address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (address.sa_family == AF_INET) {
    sockaddr_in v4{};
    std::memcpy(&v4, &address, sizeof v4);
    ::inet_ntop(AF_INET, &v4.sin_addr, text.data(), text.size());
  } else if (address.sa_family == AF_INET6) {
    sockaddr_in6 v6{};
    std::memcpy(&v6, &address, sizeof v6);
    ::inet_ntop(AF_INET6, &v6.sin6_addr, text.data(), text.size());
  }
  return text.data();
}

} // namespace

http_transfer::http_transfer(exchange_id id, bulkhead::http_request request,
                             std::optional<time_point> due, std::uint64_t credit, http_events to)
    : id_{id}, request_{std::move(request)}, due_{due}, to_{std::move(to)},
      credit_{static_cast<std::int64_t>(std::min<std::uint64_t>(credit, INT64_MAX / 2))} {}

std::string http_transfer::what() const {
  return fmt::format("{} {}", request_.method, shown_url(url_));
}

expected<void> http_transfer::check_headers() const {
  if (!is_token(request_.method)) {
    return fail(errc::invalid_argument, "the method of an HTTP request is no word");
  }
  for (const auto& header : request_.headers) {
    if (!is_token(header.name)) {
      return fail(errc::invalid_argument, fmt::format("{}: \"{}\" is no name of a header", what(),
                                                      printable(shortened(header.name, 64))));
    }
    if (!is_field_value(header.value)) {
      return fail(errc::invalid_argument,
                  fmt::format("{}: the value of the header \"{}\" holds a line end or a NUL "
                              "character",
                              what(), header.name));
    }
  }
  return {};
}

/// Decides on the proxy where it matters who resolves the host's name. A proxy's connections can't
/// be looked at, so with one only https will do: what listens in the proxy's own network can't show
/// a certificate for a public name.
expected<void> http_transfer::choose_way(const environment_lookup& variable) {
  only_public_addresses_ = false;
  if (!request_.public_only) {
    if (url_.is_loopback()) {
      curl_easy_setopt(handle(), CURLOPT_PROXY, ""); // no proxy has our loopback
    }
    return {};
  }
  if (!may_be_public_host(url_.host)) {
    return fail(errc::denied, fmt::format("{}: the host isn't one of the public internet", what()));
  }
  auto proxy = proxy_for(url_, variable);
  if (!proxy.empty() && !url_.is_https()) {
    return fail(errc::denied,
                fmt::format("{}: only https is allowed here where a proxy is in use", what()));
  }
  only_public_addresses_ = proxy.empty();
  // Not by a connection that was made for a request that may go anywhere.
  curl_easy_setopt(handle(), CURLOPT_FRESH_CONNECT, 1L);
  // Set, so that no_proxy has no say either.
  curl_easy_setopt(handle(), CURLOPT_PROXY, proxy.c_str());
  curl_easy_setopt(handle(), CURLOPT_NOPROXY, "");
  return {};
}

bool http_transfer::set_headers() {
  bool has_type = false;
  bool has_agent = false;
  curl_slist* list = nullptr;
  auto add = [&](const std::string& line) {
    auto* longer = curl_slist_append(list, line.c_str());
    list = longer != nullptr ? longer : list;
    return longer != nullptr;
  };
  bool sound = true;
  for (const auto& header : request_.headers) {
    auto name = lower_case(header.name);
    has_type |= name == "content-type";
    has_agent |= name == "user-agent";
    // libcurl takes `Name:` for a wish to have no such header, and `Name;` for an empty one.
    sound &= add(header.value.empty() ? header.name + ";" : header.name + ": " + header.value);
  }
  // Without waiting a second for "100 Continue", without a form's type, and, since a paused answer
  // would be unpacked as a whole, without compression.
  sound &= add("Expect:");
  sound &= has_type || add("Content-Type:");
  sound &= has_agent || add("User-Agent: bulkhead/" BULKHEAD_VERSION);
  lines_.reset(list);
  curl_easy_setopt(handle(), CURLOPT_HTTPHEADER, list);
  return sound;
}

void http_transfer::set_method() {
  auto* curl = handle();
  if (request_.method == "GET" && request_.body.empty()) {
    curl_easy_setopt(curl, CURLOPT_HTTPGET, 1L);
    return;
  }
  if (request_.method == "HEAD") {
    curl_easy_setopt(curl, CURLOPT_NOBODY, 1L);
    return;
  }
  if (request_.method == "POST" || !request_.body.empty()) {
    curl_easy_setopt(curl, CURLOPT_POST, 1L);
    curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE,
                     static_cast<curl_off_t>(request_.body.size()));
    // By these, and not as a text: libcurl would send a text again, on a new connection, if an old
    // one broke without an answer.
    curl_easy_setopt(curl, CURLOPT_READFUNCTION, &http_transfer::on_read);
    curl_easy_setopt(curl, CURLOPT_READDATA, this);
    curl_easy_setopt(curl, CURLOPT_SEEKFUNCTION, &http_transfer::on_rewind);
    curl_easy_setopt(curl, CURLOPT_SEEKDATA, this);
  }
  if (request_.method != "POST") {
    curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, request_.method.c_str());
  }
}

void http_transfer::set_limits() {
  auto* curl = handle();
  curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS,
                   static_cast<long>(std::chrono::milliseconds{connect_time}.count()));
  if (due_) {
    auto left =
        std::chrono::ceil<std::chrono::milliseconds>(*due_ - std::chrono::steady_clock::now());
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, std::max<long>(left.count(), 1));
  }
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L);
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_TCP_KEEPALIVE, 1L);
  curl_easy_setopt(curl, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
  // A dropped exchange doesn't wait for the thread that resolves its host's name.
  curl_easy_setopt(curl, CURLOPT_QUICK_EXIT, 1L);
}

expected<void> http_transfer::prepare(const environment_lookup& variable) {
  if (hops_ == 0) {
    auto url = read_web_url(request_.url, "the URL of a request");
    if (!url) {
      // The text may hold a password, so it isn't shown.
      return fail(errc::invalid_argument,
                  "a request's URL isn't one of http or https, or has a user name in it (send "
                  "credentials in the header Authorization)");
    }
    url_ = std::move(*url);
  }
  if (auto sound = check_headers(); !sound) {
    return sound;
  }
  handle_.reset(curl_easy_init());
  auto* curl = handle();
  if (curl == nullptr) {
    return fail(errc::internal, what() + ": no memory");
  }
  sent_ = 0;
  status_ = 0;
  headers_.clear();
  head_bytes_ = head_lines_ = 0;
  head_over_ = following_ = paused_ = false;
  body_bytes_ = 0;
  complaint_[0] = '\0';
  curl_easy_setopt(curl, CURLOPT_PRIVATE, this);
  curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, complaint_.data());
  curl_easy_setopt(curl, CURLOPT_URL, url_.text().c_str());
  curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, &http_transfer::on_header);
  curl_easy_setopt(curl, CURLOPT_HEADERDATA, this);
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, &http_transfer::on_body);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, this);
  curl_easy_setopt(curl, CURLOPT_OPENSOCKETFUNCTION, &http_transfer::on_socket);
  curl_easy_setopt(curl, CURLOPT_OPENSOCKETDATA, this);
  for (const char* name : {"SSL_CERT_FILE", "CURL_CA_BUNDLE"}) {
    if (auto file = variable(name); file && !file->empty()) {
      curl_easy_setopt(curl, CURLOPT_CAINFO, file->c_str());
    }
  }
  set_limits();
  set_method();
  if (!set_headers()) {
    return fail(errc::internal, what() + ": no memory");
  }
  return choose_way(variable);
}

void http_transfer::add_credit(std::uint64_t bytes) {
  credit_ += static_cast<std::int64_t>(std::min<std::uint64_t>(bytes, INT64_MAX / 4));
  credit_ = std::min<std::int64_t>(credit_, INT64_MAX / 2);
  if (paused_ && credit_ > 0) {
    paused_ = false;
    curl_easy_pause(handle(), CURLPAUSE_CONT);
  }
}

expected<void> http_transfer::redirect() {
  ++hops_;
  auto location = std::find_if(headers_.begin(), headers_.end(), [](const http_header& header) {
    return lower_case(header.name) == "location";
  });
  auto next =
      follow_redirect(url_, request_.method, !request_.body.empty(), status_, location->value);
  if (!next) {
    return fail(next.error().code, fmt::format("{}: {}", what(), next.error().message));
  }
  request_.method = std::move(next->method);
  if (!next->keeps_body) {
    request_.body.clear();
    std::erase_if(request_.headers, [](const http_header& header) {
      return lower_case(header.name).starts_with("content-");
    });
  }
  if (next->foreign) {
    std::erase_if(request_.headers,
                  [](const http_header& header) { return !is_harmless_header(header.name); });
  }
  url_ = std::move(next->url);
  return {};
}

error http_transfer::explain(CURLcode outcome) const {
  if (!too_large_.empty()) {
    return {errc::too_large, fmt::format("{}: {}", what(), too_large_)};
  }
  if (!refused_address_.empty()) {
    return {errc::denied,
            fmt::format("{}: its host has the address {}, which isn't one of the public internet",
                        what(), refused_address_)};
  }
  auto why = printable(
      shortened(complaint_[0] != '\0' ? complaint_.data() : curl_easy_strerror(outcome), 300));
  if (outcome == CURLE_OPERATION_TIMEDOUT && due_ && std::chrono::steady_clock::now() >= *due_) {
    return {errc::timeout, fmt::format("{}: no answer before the deadline", what())};
  }
  if (outcome == CURLE_PEER_FAILED_VERIFICATION) {
    return {errc::unavailable,
            fmt::format("{}: {}; if the certificate is one of your own authority, name its file in "
                        "SSL_CERT_FILE",
                        what(), why)};
  }
  if (outcome == CURLE_UNSUPPORTED_PROTOCOL || outcome == CURLE_WEIRD_SERVER_REPLY) {
    return {errc::malformed, fmt::format("{}: the answer is no HTTP", what())};
  }
  curl_off_t began = 0;
  curl_easy_getinfo(handle(), CURLINFO_PRETRANSFER_TIME_T, &began);
  if (began == 0) {
    return {errc::unavailable, fmt::format("{}: {}", what(), why)};
  }
  return {errc::closed,
          fmt::format("{}: the connection broke before the answer was complete ({})", what(), why)};
}

void http_transfer::take_status_line(std::string_view line) {
  // "HTTP/1.1 200 OK"
  headers_.clear();
  auto space = line.find(' ');
  status_ = 0;
  for (std::size_t i = space + 1; space != std::string_view::npos && i < line.size(); ++i) {
    if (line[i] < '0' || line[i] > '9' || status_ > 99) {
      break;
    }
    status_ = status_ * 10 + static_cast<std::uint32_t>(line[i] - '0');
  }
}

/// Anything but the number of its bytes ends the transfer.
std::size_t http_transfer::take_header(std::string_view line) {
  head_bytes_ += line.size();
  if (head_bytes_ > longest_head || ++head_lines_ > most_head_lines) {
    too_large_ = fmt::format("the answer's headers are over the limit of {} bytes or {} lines",
                             longest_head, most_head_lines);
    return 0;
  }
  if (head_over_) {
    return line.size(); // a trailer
  }
  if (line.starts_with("HTTP/")) {
    take_status_line(line);
    return line.size();
  }
  auto text = trimmed(line);
  if (text.empty()) {
    return status_ < 200 && status_ != 101 ? line.size() : end_head() + line.size() - 1;
  }
  auto colon = text.find(':');
  if (colon != std::string_view::npos) {
    headers_.push_back(
        {std::string{text.substr(0, colon)}, std::string{trimmed(text.substr(colon + 1))}});
  }
  return line.size();
}

/// Answers 1.
std::size_t http_transfer::end_head() {
  head_over_ = true;
  bool somewhere = std::any_of(headers_.begin(), headers_.end(), [](const http_header& header) {
    return lower_case(header.name) == "location" && !header.value.empty();
  });
  following_ = is_redirect(status_) && somewhere && hops_ < request_.redirects;
  if (!following_) {
    to_.head(status_, headers_);
  }
  return 1;
}

std::size_t http_transfer::take_body(std::string_view bytes) {
  if (following_) {
    body_bytes_ += bytes.size();
    if (body_bytes_ > longest_redirect) {
      too_large_ = fmt::format("a redirect has over {} bytes", longest_redirect);
      return 0;
    }
    return bytes.size();
  }
  if (credit_ <= 0) {
    paused_ = true;
    return CURL_WRITEFUNC_PAUSE;
  }
  body_bytes_ += bytes.size();
  if (body_bytes_ > request_.most_bytes) {
    too_large_ = fmt::format("the answer is over the limit of {} bytes", request_.most_bytes);
    return 0;
  }
  credit_ -= static_cast<std::int64_t>(bytes.size());
  to_.body(std::string{bytes});
  return bytes.size();
}

std::size_t http_transfer::give_body(char* into, std::size_t room) {
  auto count = std::min(room, request_.body.size() - sent_);
  std::memcpy(into, request_.body.data() + sent_, count);
  sent_ += count;
  return count;
}

std::size_t http_transfer::on_header(char* bytes, std::size_t, std::size_t count, void* self) {
  return static_cast<http_transfer*>(self)->take_header({bytes, count});
}

std::size_t http_transfer::on_body(char* bytes, std::size_t, std::size_t count, void* self) {
  return count == 0 ? 0 : static_cast<http_transfer*>(self)->take_body({bytes, count});
}

std::size_t http_transfer::on_read(char* into, std::size_t, std::size_t room, void* self) {
  return static_cast<http_transfer*>(self)->give_body(into, room);
}

/// What was sent may have been carried out, and isn't sent again.
int http_transfer::on_rewind(void* self, curl_off_t offset, int origin) {
  auto& transfer = *static_cast<http_transfer*>(self);
  return offset == 0 && origin == SEEK_SET && transfer.sent_ == 0 ? CURL_SEEKFUNC_OK
                                                                  : CURL_SEEKFUNC_FAIL;
}

curl_socket_t http_transfer::on_socket(void* self, curlsocktype, curl_sockaddr* address) {
  auto& transfer = *static_cast<http_transfer*>(self);
  if (transfer.only_public_addresses_ && !is_public(address->addr)) {
    transfer.refused_address_ = numeric(address->addr);
    return CURL_SOCKET_BAD;
  }
  return ::socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

} // namespace bulkhead::io
