// Tensors as rows of the report, and those among them that have no partner.

#pragma once

#include "report/report.h"

namespace tensordiff {

// What the report tells of a tensor, or of a part of it.
TensorId id_of(const Tensor& tensor, const std::optional<Section>& section = {});

struct UnpairedOptions {
  bool stats = false;
  bool not_dumped = false;  // Both sides are dumps: what one lacks it did not record.
};
std::vector<Report::Unpaired> unpaired_rows(const Catalog& catalog, const Catalog& other,
                                            const std::vector<Leftover>& which,
                                            const UnpairedOptions& options);

}  // namespace tensordiff
