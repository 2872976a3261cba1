#include "formats/pickle/code.h"

#include <set>

#include "base/text.h"
#include "formats/pickle/machine.h"

namespace tensordiff::pickle {
namespace {

constexpr std::size_t kNamesMax = 100;  // The rest is counted.
constexpr int kStreamsMax = 1000;       // Pickles one after another.

std::string not_run(std::string_view name) {
  return fmt::format("holds a reference to '{}', which was not run", printable(name));
}

}  // namespace

void report_names(const Graph& graph, const CodeOrigin& origin, std::vector<Problem>& problems) {
  std::size_t found = 0;
  for (const NodeId id : graph.globals()) {
    const std::string_view name = graph.global(id);
    if (data_name(name).meaning != Meaning::unknown) continue;
    if (origin.scripted && name.starts_with("__torch__.")) continue;
    if (++found > kNamesMax) continue;
    problems.push_back({origin.where, not_run(name)});
  }
  if (found > kNamesMax)
    problems.push_back(
        {origin.where, fmt::format("and references to {} more names", found - kNamesMax)});
}

void report_code(const Rebuilder& rebuilder, const CodeOrigin& origin,
                 std::vector<Problem>& problems) {
  report_names(rebuilder.graph(), origin, problems);
  for (const auto& [call, inner] : rebuilder.nested_files())
    if (inner.ok()) report_code(*inner.value().rebuilder, origin, problems);
}

std::vector<Problem> code_in(const Bytes& file, uint64_t begin, const Limits& limits,
                             const std::string& where) {
  std::set<std::string> names;
  for (int i = 0; i < kStreamsMax && begin < file.size(); ++i) {
    Machine machine(file, begin, limits);
    const Result<bool> stopped = machine.run(limits.opcodes_max);
    const Graph graph = std::move(machine).take();
    for (const NodeId id : graph.globals())
      if (data_name(graph.global(id)).meaning == Meaning::unknown)
        names.insert(std::string(graph.global(id)));
    if (!stopped.ok() || !stopped.value()) break;
    begin = graph.end;
  }
  std::vector<Problem> problems;
  for (const std::string& name : names) {
    if (problems.size() == kNamesMax) break;
    problems.push_back({where, not_run(name)});
  }
  return problems;
}

}  // namespace tensordiff::pickle
