#include "report/metadata.h"

#include <map>

namespace tensordiff {

std::vector<MetadataChange> list_metadata_changes(const Catalog& a, const Catalog& b) {
  std::map<std::string, MetadataChange> all;
  for (const Metadata& entry : a.metadata) all[entry.key].a = entry.value;
  for (const Metadata& entry : b.metadata) all[entry.key].b = entry.value;
  std::vector<MetadataChange> changes;
  for (auto& [key, change] : all) {
    if (change.a == change.b || (a.format != b.format && !(change.a && change.b))) continue;
    change.key = key;
    changes.push_back(std::move(change));
  }
  return changes;
}

}  // namespace tensordiff
