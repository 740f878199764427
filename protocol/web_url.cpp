#include "protocol/web_url.hpp"

#include <algorithm>
#include <charconv>
#include <memory>
#include <optional>

#include <arpa/inet.h>
#include <curl/curl.h>
#include <fmt/format.h>

#include "protocol/ascii.hpp"
#include "protocol/printable.hpp"

namespace bulkhead {

namespace {

constexpr std::size_t shown_url = 200;
constexpr std::size_t most_fields = 32;

struct url_deleter {
  void operator()(CURLU* url) const { curl_url_cleanup(url); }
};

std::string part(CURLU* url, CURLUPart which, unsigned flags = 0) {
  char* text = nullptr;
  if (curl_url_get(url, which, &text, flags) != CURLUE_OK) {
    return {};
  }
  std::string result{text};
  curl_free(text);
  return result;
}

bool is_url_byte(char c) {
  auto byte = static_cast<unsigned char>(c);
  return byte > 0x20 && byte < 0x7f &&
         std::string_view{"\"<>\\^`{|}"}.find(c) == std::string_view::npos;
}

/// The host as a 32-bit IPv4 address.
std::optional<std::uint32_t> ipv4(const std::string& host) {
  in_addr address{};
  if (::inet_pton(AF_INET, host.c_str(), &address) != 1) {
    return {};
  }
  return ntohl(address.s_addr);
}

std::optional<in6_addr> ipv6(const std::string& host) {
  in6_addr address{};
  if (host.size() < 2 || host.front() != '[' || host.back() != ']') {
    return {};
  }
  auto plain =
      host.substr(1, host.find('%') != std::string::npos ? host.find('%') - 1 : host.size() - 2);
  if (::inet_pton(AF_INET6, plain.c_str(), &address) != 1) {
    return {};
  }
  return address;
}

/// The IPv4 address that an IPv6 address stands for (RFC 4291, 2.5.5.2).
std::optional<std::uint32_t> mapped(const in6_addr& address) {
  if (!IN6_IS_ADDR_V4MAPPED(&address)) {
    return {};
  }
  std::uint32_t result = 0;
  for (int i = 12; i < 16; ++i) {
    result = result << 8 | address.s6_addr[i];
  }
  return result;
}

bool is_loopback_address(std::uint32_t address) {
  return address >> 24 == 127;
}

bool is_private_address(std::uint32_t address) {
  return is_loopback_address(address) || address >> 24 == 10 || address >> 20 == 0xac1 ||
         address >> 16 == 0xc0a8 || address >> 16 == 0xa9fe || address >> 22 == 0x191 ||
         address >> 24 == 0;
}

tl::unexpected<error> bad_url(std::string_view what, std::string_view text, std::string_view why) {
  return fail(
      errc::invalid_argument,
      fmt::format("{} \"{}\" {}", what, printable(shortened(std::string{text}, shown_url)), why));
}

/// Is the host written with percent signs? What they stand for may be another host's name, or an
/// address, to whoever reads the URL next. An IPv6 zone (RFC 6874) is no part of the name.
bool hides_host(std::string_view url) {
  auto authority = url.substr(url.find("//") + 2);
  authority = authority.substr(0, authority.find_first_of("/?#"));
  return !authority.starts_with('[') && authority.find('%') != std::string_view::npos;
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') {
    return c - '0';
  }
  c = lower_case(c);
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

expected<std::string> decode_form_text(std::string_view text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      result += text[i] == '+' ? ' ' : text[i];
      continue;
    }
    auto high = i + 2 < text.size() ? hex_digit(text[i + 1]) : -1;
    auto low = i + 2 < text.size() ? hex_digit(text[i + 2]) : -1;
    if (high < 0 || low < 0) {
      return fail(errc::malformed, "a percent sign without two hex digits");
    }
    result += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return result;
}

} // namespace

std::string web_url::origin() const {
  auto own_port = port == (is_https() ? 443 : 80);
  return own_port ? fmt::format("{}://{}", scheme, host)
                  : fmt::format("{}://{}:{}", scheme, host, port);
}

std::string web_url::text() const {
  return origin() + path + (query.empty() ? "" : "?" + query);
}

bool web_url::is_loopback() const {
  if (host == "localhost" || host.ends_with(".localhost")) {
    return true;
  }
  if (auto address = ipv4(host)) {
    return is_loopback_address(*address);
  }
  auto address = ipv6(host);
  if (!address) {
    return false;
  }
  auto inner = mapped(*address);
  return inner ? is_loopback_address(*inner) : IN6_IS_ADDR_LOOPBACK(&*address);
}

bool web_url::is_private() const {
  if (is_loopback()) {
    return true;
  }
  if (auto address = ipv4(host)) {
    return is_private_address(*address);
  }
  auto address = ipv6(host);
  if (!address) {
    return false;
  }
  if (auto inner = mapped(*address)) {
    return is_private_address(*inner);
  }
  return (address->s6_addr[0] & 0xfe) == 0xfc || IN6_IS_ADDR_LINKLOCAL(&*address) ||
         IN6_IS_ADDR_SITELOCAL(&*address) || IN6_IS_ADDR_UNSPECIFIED(&*address);
}

expected<web_url> read_web_url(std::string_view text, std::string_view what) {
  if (text.size() > longest_url) {
    return bad_url(what, text, fmt::format("is longer than {} bytes", longest_url));
  }
  auto start = lower_case(text.substr(0, 8));
  if (!start.starts_with("http://") && start != "https://") {
    return bad_url(what, text, "isn't an http or https URL");
  }
  if (!std::all_of(text.begin(), text.end(), is_url_byte)) {
    return bad_url(what, text, "holds a character that no URL may hold");
  }
  if (hides_host(text)) {
    return bad_url(what, text, "holds a percent sign in its host; write the host's name as it is");
  }
  std::unique_ptr<CURLU, url_deleter> url{curl_url()};
  if (!url || curl_url_set(url.get(), CURLUPART_URL, std::string{text}.c_str(),
                           CURLU_DISALLOW_USER) != CURLUE_OK) {
    return bad_url(what, text, "isn't a URL of a host, without a user name in it");
  }
  web_url result;
  result.scheme = lower_case(part(url.get(), CURLUPART_SCHEME));
  result.host = lower_case(part(url.get(), CURLUPART_HOST));
  result.path = part(url.get(), CURLUPART_PATH);
  result.query = part(url.get(), CURLUPART_QUERY);
  auto port = part(url.get(), CURLUPART_PORT, CURLU_DEFAULT_PORT);
  std::from_chars(port.data(), port.data() + port.size(), result.port);
  if (result.host.empty() || result.port == 0 || !result.path.starts_with('/')) {
    return bad_url(what, text, "isn't a URL of a host");
  }
  return result;
}

expected<web_url> resolve_reference(const web_url& base, std::string_view reference,
                                    std::string_view what) {
  std::unique_ptr<CURLU, url_deleter> url{curl_url()};
  char* text = nullptr;
  auto sound = reference.size() <= longest_url && reference.find('\0') == std::string_view::npos &&
               url && curl_url_set(url.get(), CURLUPART_URL, base.text().c_str(), 0) == CURLUE_OK &&
               curl_url_set(url.get(), CURLUPART_URL, std::string{reference}.c_str(),
                            CURLU_URLENCODE) == CURLUE_OK &&
               curl_url_get(url.get(), CURLUPART_URL, &text, 0) == CURLUE_OK;
  if (!sound) {
    return fail(errc::invalid_argument,
                fmt::format("{} of {} is no URL of http or https", what, base.origin()));
  }
  std::string resolved{text};
  curl_free(text);
  auto result = read_web_url(resolved, what);
  if (!result) {
    // The text may hold a secret, so it isn't shown.
    return fail(errc::invalid_argument,
                fmt::format("{} of {} is no URL of http or https", what, base.origin()));
  }
  return result;
}

std::string encode_form_text(std::string_view text) {
  constexpr std::string_view kept = "-._~";
  std::string result;
  for (char c : text) {
    auto digit = c >= '0' && c <= '9';
    auto letter = lower_case(c) >= 'a' && lower_case(c) <= 'z';
    if (digit || letter || kept.find(c) != std::string_view::npos) {
      result += c;
    } else {
      fmt::format_to(std::back_inserter(result), "%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return result;
}

std::string encode_form(const form_fields& fields) {
  std::string result;
  for (const auto& [name, value] : fields) {
    result += result.empty() ? "" : "&";
    result += encode_form_text(name) + "=" + encode_form_text(value);
  }
  return result;
}

expected<std::map<std::string, std::string>> decode_form(std::string_view text) {
  std::map<std::string, std::string> result;
  while (!text.empty()) {
    auto field = text.substr(0, text.find('&'));
    text.remove_prefix(std::min(field.size() + 1, text.size()));
    if (field.empty()) {
      continue;
    }
    auto equals = field.find('=');
    auto name = decode_form_text(field.substr(0, equals));
    auto value = decode_form_text(equals == std::string_view::npos ? std::string_view{}
                                                                   : field.substr(equals + 1));
    if (!name || !value) {
      return tl::unexpected{(name ? value : name).error()};
    }
    if (result.size() == most_fields) {
      return fail(errc::malformed, fmt::format("more than {} fields", most_fields));
    }
    if (!result.emplace(std::move(*name), std::move(*value)).second) {
      return fail(errc::malformed, "a field stands there twice");
    }
  }
  return result;
}

} // namespace bulkhead
