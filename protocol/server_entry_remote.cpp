#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "protocol/ascii.hpp"
#include "protocol/masked_arguments.hpp"
#include "protocol/server_entry_reader.hpp"
#include "protocol/web_url.hpp"

namespace bulkhead {

namespace {

bool is_control(char c) {
  return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
}

/// A token of RFC 9110, section 5.6.2.
bool is_header_name(std::string_view name) {
  constexpr std::string_view marks = "!#$%&'*+-.^_`|~";
  return !name.empty() && std::all_of(name.begin(), name.end(), [&](char c) {
    auto low = lower_case(c);
    return (low >= 'a' && low <= 'z') || (c >= '0' && c <= '9') ||
           marks.find(c) != std::string_view::npos;
  });
}

/// The members that may hold a server's address, and what each says of how it is spoken to.
struct address_key {
  const char* key;
  server_transport transport;
};
constexpr std::array address_keys = {
    address_key{"url", server_transport::http},
    address_key{"httpUrl", server_transport::http},
    address_key{"serverUrl", server_transport::http},
};

} // namespace

server_transport server_entry_reader::read_transport() {
  auto type = plain_text("type");
  if (type == "http" || type == "streamable-http" || type == "streamableHttp") {
    return server_transport::http;
  }
  if (type == "sse") {
    return server_transport::sse;
  }
  if (!type.empty() && type != "stdio") {
    refuse("type must be \"stdio\", \"http\" or \"sse\"");
  }
  if (type.empty() && member("command") == nullptr) {
    for (const auto& [key, transport] : address_keys) {
      if (member(key) != nullptr) {
        return transport;
      }
    }
  }
  return server_transport::stdio;
}

void server_entry_reader::read_address(server_entry& target) {
  for (const auto& [key, transport] : address_keys) {
    const auto* value = member(key);
    if (value == nullptr) {
      continue;
    }
    auto url = expanded(key, *value);
    // Its own words would show the text, in which variables are expanded.
    if (!read_web_url(url, key)) {
      refuse(fmt::format("{} must be an address that begins with http:// or https://, with a host "
                         "and without spaces, other characters that no URL may hold, or a user "
                         "name (credentials go into headers)",
                         key));
      return;
    }
    target.url = std::move(url);
    target.shown_url = mask_arguments({value->get<std::string>()}).front();
    return;
  }
  refuse("has no url: a server of this type needs the address to connect to");
}

std::map<std::string, std::string> server_entry_reader::read_headers() {
  std::map<std::string, std::string> result;
  const auto* headers = member("headers");
  if (headers == nullptr) {
    return result;
  }
  if (!headers->is_object()) {
    refuse("headers must be an object of strings");
    return result;
  }
  for (const auto& [name, value] : headers->items()) {
    if (!is_header_name(name)) {
      refuse("headers has a name that no HTTP header can have");
      return result;
    }
    auto text = expanded("headers." + name, value);
    if (std::any_of(text.begin(), text.end(), is_control)) {
      refuse(fmt::format("headers.{} holds a control character", name));
    }
    // An empty one says nothing; a variable that isn't there leaves such.
    if (!text.empty()) {
      result[name] = std::move(text);
    }
  }
  return result;
}

server_oauth server_entry_reader::read_oauth() {
  server_oauth result;
  const auto* oauth = member("oauth");
  // Some hosts write false where no login is wanted.
  if (oauth == nullptr || (oauth->is_boolean() && !oauth->get<bool>())) {
    return result;
  }
  if (!oauth->is_object()) {
    refuse("oauth must be an object");
    return result;
  }
  auto text = [&](const char* key) {
    auto value = oauth->find(key);
    return value != oauth->end() ? expanded(fmt::format("oauth.{}", key), *value) : std::string{};
  };
  result.client_id = text("clientId");
  result.client_secret = text("clientSecret");
  result.client_document = text("clientMetadataUrl");
  result.scope = text("scope");
  if (auto port = oauth->find("callbackPort"); port != oauth->end()) {
    if (!port->is_number_unsigned() || port->get<std::uint64_t>() > 65535) {
      refuse("oauth.callbackPort must be a port, from 0 to 65535");
      return result;
    }
    result.callback_port = port->get<std::uint16_t>();
  }
  return result;
}

} // namespace bulkhead
