#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace bulkhead {

/// Is the address one of the public internet, by IANA's registries of special-purpose addresses
/// (RFC 6890)? Loopback, private, link-local (where clouds keep their metadata), shared (RFC 6598),
/// unique local, multicast, documentation and reserved addresses aren't, nor are IPv6 addresses
/// that lead to such an IPv4 address (mapped, NAT64, 6to4).
bool is_public_ipv4(std::uint32_t address); ///< in host byte order
bool is_public_ipv6(const std::array<std::uint8_t, 16>& address);

/// Could a host, as it stands in a URL (an IPv6 address in brackets), be a public one? False for
/// addresses that aren't, and for names that never lead outside: localhost, a name without a dot,
/// and those below .localhost, .local, .internal, .home.arpa.
bool may_be_public_host(std::string_view host);

} // namespace bulkhead
