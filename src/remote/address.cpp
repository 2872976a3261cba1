#include "remote/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

namespace tensordiff::remote {
namespace {

struct Block {
  uint32_t network;
  unsigned bits;
};

// IANA's registry of special-purpose IPv4 addresses, and multicast.
constexpr Block kSpecial[] = {
    {0x00000000, 8},   // 0.0.0.0/8, this network
    {0x0a000000, 8},   // 10.0.0.0/8, private
    {0x64400000, 10},  // 100.64.0.0/10, shared by a carrier
    {0x7f000000, 8},   // 127.0.0.0/8, loopback
    {0xa9fe0000, 16},  // 169.254.0.0/16, link-local
    {0xac100000, 12},  // 172.16.0.0/12, private
    {0xc0000000, 24},  // 192.0.0.0/24, protocols
    {0xc0000200, 24},  // 192.0.2.0/24, documentation
    {0xc0586300, 24},  // 192.88.99.0/24, relays of 6to4
    {0xc0a80000, 16},  // 192.168.0.0/16, private
    {0xc6120000, 15},  // 198.18.0.0/15, benchmarks
    {0xc6336400, 24},  // 198.51.100.0/24, documentation
    {0xcb007100, 24},  // 203.0.113.0/24, documentation
    {0xe0000000, 3},   // 224.0.0.0/3, multicast and reserved
};

bool is_public_v4(uint32_t address) {
  return std::ranges::none_of(kSpecial, [&](const Block& block) {
    return (address ^ block.network) >> (32 - block.bits) == 0;
  });
}

uint32_t v4_at(const std::array<uint8_t, 16>& address, std::size_t at) {
  return static_cast<uint32_t>(address[at]) << 24 | static_cast<uint32_t>(address[at + 1]) << 16 |
         static_cast<uint32_t>(address[at + 2]) << 8 | address[at + 3];
}

bool starts(const std::array<uint8_t, 16>& address, std::initializer_list<uint8_t> prefix) {
  return std::equal(prefix.begin(), prefix.end(), address.begin());
}

// Only 2000::/3 is handed out for the public internet; some of it carries an IPv4 address.
bool is_public_v6(const std::array<uint8_t, 16>& address) {
  if (starts(address, {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff}))
    return is_public_v4(v4_at(address, 12));
  if (starts(address, {0x00, 0x64, 0xff, 0x9b, 0, 0, 0, 0, 0, 0, 0, 0}))
    return is_public_v4(v4_at(address, 12));  // NAT64
  if ((address[0] & 0xe0) != 0x20) return false;
  if (starts(address, {0x20, 0x02})) return is_public_v4(v4_at(address, 2));  // 6to4
  if (starts(address, {0x20, 0x01, 0x00, 0x00})) return false;                // Teredo
  return !starts(address, {0x20, 0x01, 0x0d, 0xb8});                          // Documentation
}

}  // namespace

bool is_public(const sockaddr* address) {
  if (address->sa_family == AF_INET) {
    sockaddr_in v4 = {};
    std::memcpy(&v4, address, sizeof(v4));
    return is_public_v4(ntohl(v4.sin_addr.s_addr));
  }
  if (address->sa_family != AF_INET6) return false;
  sockaddr_in6 v6 = {};
  std::memcpy(&v6, address, sizeof(v6));
  std::array<uint8_t, 16> bytes = {};
  std::memcpy(bytes.data(), &v6.sin6_addr, bytes.size());
  return is_public_v6(bytes);
}

}  // namespace tensordiff::remote
