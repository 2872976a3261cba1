#include "report/unpaired.h"

#include "align/whole.h"
#include "base/parallel.h"

namespace tensordiff {

std::vector<Report::Unpaired> unpaired_rows(const Catalog& catalog, const Catalog& other,
                                            const std::vector<Leftover>& which,
                                            const UnpairedOptions& options) {
  std::vector<Report::Unpaired> rows(which.size());
  for_each_index(which.size(), [&](std::size_t i) {
    const Tensor& tensor = catalog.tensors[which[i].tensor];
    rows[i].id = id_of(tensor);
    rows[i].layer_absent = which[i].layer_absent;
    rows[i].not_dumped = options.not_dumped;
    if (which[i].nearest) rows[i].nearest = other.tensors[*which[i].nearest].name;
    rows[i].likeness = which[i].likeness;
    rows[i].why = which[i].why;
    if (!options.stats || !tensor.fault.empty()) return;
    Result<Stats> stats = statistics(all_shards_of(tensor));
    if (stats.ok())
      rows[i].stats = std::move(stats).value();
    else
      rows[i].id.fault = stats.error().message();
  });
  return rows;
}

}  // namespace tensordiff
