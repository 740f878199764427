#include "protocol/web_url.hpp"

#include "protocol/public_address.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace bulkhead::fuzz {

namespace {

void check_url(const web_url& url) {
  require(url.scheme == "http" || url.scheme == "https", "a URL is of the web");
  require(!url.host.empty() && url.port != 0 && url.path.starts_with('/'), "a URL has its parts");
  require(url.host.find_first_of("/?#@\\ ") == std::string::npos, "a host is a host");
  for (char c : url.text()) {
    require(c > 0x20 && c < 0x7f, "a URL is visible ASCII");
  }
  require(!url.is_loopback() || url.is_private(), "what is loopback is private");
  require(!url.is_private() || !may_be_public_host(url.host), "what is private isn't public");
  // Whoever is handed the text connects to the host that was judged.
  auto again = read_web_url(url.text(), "a URL");
  require(again && *again == url, "a URL that is written anew says the same");
  auto origin = read_web_url(url.origin(), "an origin");
  require(origin && origin->origin() == url.origin() && origin->host == url.host,
          "an origin is a URL");
}

void check_reference(std::string_view text) {
  const auto base = read_web_url("https://a.example/one/two?three", "a URL");
  require(base.has_value(), "the base is a URL");
  auto resolved = resolve_reference(*base, text, "a reference");
  if (resolved) {
    check_url(*resolved);
  } else {
    require_message(resolved.error().message);
  }
}

void check_form(std::string_view text) {
  auto fields = decode_form(text);
  if (!fields) {
    return;
  }
  auto again = decode_form(encode_form({fields->begin(), fields->end()}));
  require(again && *again == *fields, "a form that is written anew says the same");
}

} // namespace

void web_url_target(std::string_view input) {
  auto url = read_web_url(input, "a URL");
  if (url) {
    check_url(*url);
  } else {
    require(url.error().code == errc::invalid_argument, "a bad URL is an invalid argument");
    require_message(url.error().message);
  }
  check_reference(input);
  check_form(input);
}

} // namespace bulkhead::fuzz
