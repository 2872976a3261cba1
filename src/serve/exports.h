// Files of results that were asked for: rendered when they are fetched.

#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "report/renderer.h"

namespace tensordiff::serve {

// What a user of the page calls a renderer, and how its file ends.
struct ExportFormat {
  std::string_view name;      // "json"
  std::string_view renderer;  // "report": the name of the Renderer.
  std::string_view extension;
  std::string_view type;
};
// Those whose renderer this program has.
std::vector<ExportFormat> export_formats();

struct Export {
  std::string session;
  ExportFormat format;
  RenderOptions options;
};

class Exports {
 public:
  std::string add(Export wanted);
  std::optional<Export> find(const std::string& id) const;

 private:
  mutable std::mutex mutex_;
  std::map<std::string, Export> exports_;
};

std::string render(const Export& wanted, const Report& report);

}  // namespace tensordiff::serve
