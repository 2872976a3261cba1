// Entries of B that hold something else than A's under the same name, while all that follows
// agrees.
//
// Ports cut their modules otherwise: a layer may give what it adds to the stream instead of the
// stream. Then B holds one of its own tensors a second time, that tensor agrees with A's, and so
// does what should have read the entry. Such entries are no steps of B's.
//
// Some models multiply what the embedding gives (Gemma, by the root of its size): one program does
// that inside the module and the other behind it. And some squash the logits (Gemma 2): "lm_head"
// stands before that, "logits" behind it.

#pragma once

#include <string_view>

#include "diagnose/site.h"

namespace tensordiff {

// Sets `aside` where a judged run shows it, and for the same entry in other layers. Says whether
// any was found that was not known.
bool find_asides(Run& run);

// What is said of such an entry.
std::string_view aside_note(const Site& site);

}  // namespace tensordiff
