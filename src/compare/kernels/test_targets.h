// Runs a test once with each instruction set that this machine has.

#pragma once

#include <hwy/targets.h>

#include <functional>

namespace tensordiff {

// Best last.
inline void on_every_target(const std::function<void(const char* target)>& check) {
  hwy::SetSupportedTargetsForTest(0);
  const int64_t all = hwy::SupportedTargets();
  for (int64_t rest = all; rest != 0; rest &= rest - 1) {
    const int64_t target = rest & -rest;
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    check(hwy::TargetName(target));
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

}  // namespace tensordiff
