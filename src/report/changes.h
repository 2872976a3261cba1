// The list of changes: what `-o json`, `-o yaml` and `--stats` show, each in its own spelling.
//
// A change of layout alone is none: [1, 20, 128] against [20, 128] with the same values does not
// appear. Where the numbers of elements differ, the shape is the change; else the values are.

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "report/renderer.h"

namespace tensordiff {

enum class ChangeKind { shape, stats, added, removed, unreadable };

struct Change {
  // One tensor as the list shows it.
  struct Tensor {
    const TensorId* id;
    const Stats* stats;
  };

  ChangeKind kind;
  std::string_view name;
  Tensor a{}, b{};       // The side that is there; both for shape and stats.
  std::string message;   // Why it is unreadable.
  double magnitude = 0;  // How large it is, for sorting.
};

// By name, unless the options ask for another order.
std::vector<Change> list_changes(const Report& report, const RenderOptions& options);

}  // namespace tensordiff
