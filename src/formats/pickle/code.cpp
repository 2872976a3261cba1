#include "formats/pickle/code.h"

#include <algorithm>
#include <functional>
#include <set>

#include "base/text.h"
#include "formats/pickle/danger.h"
#include "formats/pickle/machine.h"

namespace tensordiff::pickle {
namespace {

constexpr std::size_t kNamesMax = 100;  // The rest is counted.
constexpr int kStreamsMax = 1000;       // Pickles one after another.

// Adds names of code that are not known to be harmless, the worst first.
void add_names(std::vector<std::string> names, const std::string& where,
               std::vector<Problem>& problems) {
  std::vector<Problem> found;
  for (const std::string& name : names)
    if (const Severity severity = severity_of(name); severity != Severity::note)
      found.push_back({where,
                       fmt::format("holds a reference to '{}', which was not run", printable(name)),
                       severity});
  std::ranges::stable_sort(found, std::greater(), &Problem::severity);
  for (std::size_t i = 0; i < found.size() && i < kNamesMax; ++i)
    problems.push_back(std::move(found[i]));
  if (found.size() > kNamesMax)
    problems.push_back(
        {where, fmt::format("and references to {} more names", found.size() - kNamesMax)});
}

}  // namespace

void report_names(const Graph& graph, const CodeOrigin& origin, std::vector<Problem>& problems) {
  std::vector<std::string> names;
  for (const NodeId id : graph.globals()) {
    const std::string_view name = graph.global(id);
    if (!origin.scripted || !name.starts_with("__torch__.")) names.emplace_back(name);
  }
  add_names(std::move(names), origin.where, problems);
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
    for (const NodeId id : graph.globals()) names.insert(std::string(graph.global(id)));
    if (!stopped.ok() || !stopped.value()) break;
    begin = graph.end;
  }
  std::vector<Problem> problems;
  add_names({names.begin(), names.end()}, where, problems);
  return problems;
}

}  // namespace tensordiff::pickle
