// Who may ask: the checks that every request has to pass before anything else looks at it.
//
// A page from elsewhere that the user happens to have open can send requests to this machine, and
// can make its own name point here. So the Host has to be ours, a request that says where it comes
// from has to come from us, and whoever wants data has to know the token.

#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "serve/message.h"

namespace tensordiff::serve {

struct Guard {
  std::string token;               // Kept in the state folder: links stay alive over a restart.
  bool legacy_open = false;        // The earlier debugger's routes ask for no token.
  std::vector<std::string> hosts;  // "127.0.0.1:5000", in lower case.
  uint16_t port = 0;
  bool any_address = false;  // Listening elsewhere: every numeric address of this machine is ours.

  // A refusal, or nothing.
  std::optional<Response> check(const Request& request) const;
  // `offered` is compared in a time that does not tell how much of it was right.
  bool knows_token(std::string_view offered) const;

 private:
  bool is_ours(std::string_view host) const;
  bool comes_from_elsewhere(const Request& request) const;
};

// Loopback names with this port; with `listen` also that address and the name of the machine.
Guard make_guard(uint16_t port, const std::string& listen, bool loopback);

// 128 random bits as text.
std::string random_token();
// `length` random letters and digits, for identifiers.
std::string random_id(std::size_t length = 12);

bool is_loopback(std::string_view address);

// What every answer says to the browser.
void add_security_headers(Response& response);

}  // namespace tensordiff::serve
