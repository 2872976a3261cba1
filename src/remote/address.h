// Which addresses of a network are somebody's own: not for a server that opens what others name.

#pragma once

#include <sys/socket.h>

namespace tensordiff::remote {

// Whether an address is of the public internet: not loopback, private, link-local (where clouds
// keep credentials), shared by a carrier, multicast, reserved, or one of these inside an IPv6
// address.
bool is_public(const sockaddr* address);

}  // namespace tensordiff::remote
