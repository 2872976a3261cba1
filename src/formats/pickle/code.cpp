#include "formats/pickle/code.h"

#include "base/text.h"

namespace tensordiff::pickle {
namespace {

constexpr std::size_t kNamesMax = 100;  // The rest is counted.

}  // namespace

void report_code(const Rebuilder& rebuilder, const CodeOrigin& origin,
                 std::vector<Problem>& problems) {
  std::size_t found = 0;
  const Graph& graph = rebuilder.graph();
  for (const NodeId id : graph.globals()) {
    const std::string_view name = graph.global(id);
    if (data_name(name).meaning != Meaning::unknown) continue;
    if (origin.scripted && name.starts_with("__torch__.")) continue;
    if (++found > kNamesMax) continue;
    problems.push_back({origin.where, fmt::format("holds a reference to '{}', which was not run",
                                                  printable(name))});
  }
  if (found > kNamesMax)
    problems.push_back(
        {origin.where, fmt::format("and references to {} more names", found - kNamesMax)});
  for (const auto& [call, inner] : rebuilder.nested_files())
    if (inner.ok()) report_code(*inner.value().rebuilder, origin, problems);
}

}  // namespace tensordiff::pickle
