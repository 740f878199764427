#include "protocol/public_address.hpp"

#include <algorithm>
#include <string>

#include <arpa/inet.h>

#include "protocol/ascii.hpp"

namespace bulkhead {

namespace {

struct ipv4_block {
  std::uint32_t start;
  int bits;
};

/// IANA IPv4 Special-Purpose Address Registry, multicast and class E.
constexpr std::array<ipv4_block, 15> special_ipv4 = {{
    {0x00000000, 8},  // this network
    {0x0A000000, 8},  // private
    {0x64400000, 10}, // shared (carrier-grade NAT)
    {0x7F000000, 8},  // loopback
    {0xA9FE0000, 16}, // link-local
    {0xAC100000, 12}, // private
    {0xC0000000, 24}, // IETF protocol assignments
    {0xC0000200, 24}, // documentation
    {0xC0586300, 24}, // 6to4 relays
    {0xC0A80000, 16}, // private
    {0xC6120000, 15}, // benchmarks
    {0xC6336400, 24}, // documentation
    {0xCB007100, 24}, // documentation
    {0xE0000000, 4},  // multicast
    {0xF0000000, 4},  // reserved, broadcast
}};

std::uint32_t word(const std::array<std::uint8_t, 16>& address, std::size_t at) {
  return static_cast<std::uint32_t>(address[at]) << 24 |
         static_cast<std::uint32_t>(address[at + 1]) << 16 |
         static_cast<std::uint32_t>(address[at + 2]) << 8 | address[at + 3];
}

} // namespace

bool is_public_ipv4(std::uint32_t address) {
  return std::none_of(special_ipv4.begin(), special_ipv4.end(), [&](const ipv4_block& block) {
    return (address ^ block.start) >> (32 - block.bits) == 0;
  });
}

bool is_public_ipv6(const std::array<std::uint8_t, 16>& address) {
  const auto first = word(address, 0);
  if (first == 0x0064FF9B && word(address, 4) == 0 && word(address, 8) == 0) {
    return is_public_ipv4(word(address, 12)); // NAT64 (RFC 6052)
  }
  if (first >> 16 == 0x2002) {
    return is_public_ipv4(word(address, 2)); // 6to4 (RFC 3056)
  }
  // Global unicast is 2000::/3; in it 2001::/23 is for protocols (Teredo among them), and
  // 2001:db8::/32 and 3fff::/20 are for documentation.
  return first >> 29 == 1 && first >> 9 != 0x20010000 >> 9 && first != 0x20010DB8 &&
         first >> 12 != 0x3FFF0000 >> 12;
}

bool may_be_public_host(std::string_view host) {
  auto name = lower_case(host);
  if (name.starts_with('[')) {
    std::array<std::uint8_t, 16> address{};
    // One with a zone ("%eth0") is no public address, and isn't read.
    return name.ends_with(']') &&
           ::inet_pton(AF_INET6, name.substr(1, name.size() - 2).c_str(), address.data()) == 1 &&
           is_public_ipv6(address);
  }
  if (in_addr address{}; ::inet_pton(AF_INET, name.c_str(), &address) == 1) {
    return is_public_ipv4(ntohl(address.s_addr));
  }
  while (name.ends_with('.')) {
    name.pop_back();
  }
  constexpr std::array<std::string_view, 4> inner = {".localhost", ".local", ".internal",
                                                     ".home.arpa"};
  return name.find('.') != std::string::npos &&
         std::none_of(inner.begin(), inner.end(),
                      [&](std::string_view end) { return name.ends_with(end); });
}

} // namespace bulkhead
