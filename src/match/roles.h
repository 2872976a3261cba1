// How the common conventions spell the parts of a model.

#pragma once

#include <string>
#include <string_view>

namespace tensordiff {

// What a spelling stands for: words joined by dots, "self.attn.q.proj". `role` is "" where it is
// none that we know. The views last as long as the program.
struct Spelling {
  std::string_view role;
  std::string_view text;
};
Spelling role_in_layer(const std::string& words);
Spelling role_outside(const std::string& words);

}  // namespace tensordiff
