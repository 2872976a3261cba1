// One client of the server, request after request: each is read within hard limits and handed on,
// and its answer is written. The only file that knows Boost is its .cpp.

#pragma once

#include "serve/http.h"
#include "serve/socket.h"
#include "serve/watch.h"

namespace tensordiff::serve {

// Returns when the client is gone or has broken a rule. What a request throws, such as that memory
// ran out, ends its connection and nothing else.
void converse(const Socket& socket, const HttpHandler& handler, const HttpLimits& limits,
              CloseWatch& watch);

// Says that there are too many connections already.
void turn_away(const Socket& socket);

}  // namespace tensordiff::serve
