#include "protocol/public_address.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>

namespace bulkhead {
namespace {

bool public4(const char* text) {
  in_addr address{};
  EXPECT_EQ(::inet_pton(AF_INET, text, &address), 1) << text;
  return is_public_ipv4(ntohl(address.s_addr));
}

bool public6(const char* text) {
  std::array<std::uint8_t, 16> address{};
  EXPECT_EQ(::inet_pton(AF_INET6, text, address.data()), 1) << text;
  return is_public_ipv6(address);
}

TEST(public_address, special_ipv4_addresses_are_not_public) {
  for (const char* text :
       {"0.0.0.0",        "10.0.0.1",        "10.255.255.255",  "100.64.0.1",  "100.127.255.255",
        "127.0.0.1",      "127.255.255.255", "169.254.169.254", "172.16.0.1",  "172.31.255.255",
        "192.0.0.8",      "192.0.2.1",       "192.88.99.1",     "192.168.1.1", "198.18.0.1",
        "198.19.255.255", "198.51.100.1",    "203.0.113.9",     "224.0.0.1",   "239.255.255.255",
        "240.0.0.1",      "255.255.255.255"}) {
    EXPECT_FALSE(public4(text)) << text;
  }
  for (const char* text :
       {"1.1.1.1", "8.8.8.8", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0",
        "126.255.255.255", "128.0.0.1", "169.253.255.255", "172.15.255.255", "172.32.0.0",
        "192.167.255.255", "192.169.0.0", "198.17.255.255", "198.20.0.0", "223.255.255.255"}) {
    EXPECT_TRUE(public4(text)) << text;
  }
}

TEST(public_address, special_ipv6_addresses_are_not_public) {
  for (const char* text :
       {"::", "::1", "::ffff:127.0.0.1", "::ffff:8.8.8.8", "fe80::1", "fec0::1", "fc00::1",
        "fd00:ec2::254", "ff02::1", "100::1", "2001::1", "2001:1::1", "2001:db8::1", "3fff::1",
        "64:ff9b::7f00:1", "64:ff9b:1::1", "2002:7f00:1::", "2002:a9fe:a9fe::1", "4000::1"}) {
    EXPECT_FALSE(public6(text)) << text;
  }
  for (const char* text : {"2606:4700:4700::1111", "2a00:1450::1", "2001:4860:4860::8888",
                           "64:ff9b::808:808", "2002:808:808::1"}) {
    EXPECT_TRUE(public6(text)) << text;
  }
}

TEST(public_address, names_that_stay_inside_are_not_public) {
  for (const char* host : {"localhost", "LOCALHOST", "localhost.", "a.localhost", "printer.local",
                           "metadata.google.internal", "router.home.arpa", "intranet", "127.0.0.1",
                           "[::1]", "[fe80::1%25eth0]", "[::ffff:10.0.0.1]", ""}) {
    EXPECT_FALSE(may_be_public_host(host)) << host;
  }
  for (const char* host : {"example.com", "a.b.example.com.", "8.8.8.8", "[2606:4700::1]"}) {
    EXPECT_TRUE(may_be_public_host(host)) << host;
  }
}

} // namespace
} // namespace bulkhead
