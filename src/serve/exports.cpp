#include "serve/exports.h"

#include <algorithm>

#include "serve/guard.h"

namespace tensordiff::serve {
namespace {

constexpr ExportFormat kFormats[] = {
    {"json", "report", ".json", "application/json"},
    {"html", "html", ".html", "text/html; charset=utf-8"},
    {"csv", "csv", ".csv", "text/csv; charset=utf-8"},
    {"junit", "junit", ".xml", "application/xml"},
    {"markdown", "markdown", ".md", "text/markdown; charset=utf-8"},
    {"text", "text", ".txt", "text/plain; charset=utf-8"},
};

// Each is a few words; so many can wait to be fetched.
constexpr std::size_t kExportsMax = 1000;

const Renderer* renderer_of(const ExportFormat& format) {
  const auto found = std::ranges::find(renderers::kAll, format.renderer, &Renderer::name);
  return found == std::end(renderers::kAll) ? nullptr : *found;
}

}  // namespace

std::vector<ExportFormat> export_formats() {
  std::vector<ExportFormat> formats;
  for (const ExportFormat& format : kFormats)
    if (renderer_of(format)) formats.push_back(format);
  return formats;
}

std::string Exports::add(Export wanted) {
  const std::lock_guard lock(mutex_);
  if (exports_.size() >= kExportsMax) exports_.clear();
  const std::string id = random_id();
  exports_.emplace(id, std::move(wanted));
  return id;
}

std::optional<Export> Exports::find(const std::string& id) const {
  const std::lock_guard lock(mutex_);
  const auto found = exports_.find(id);
  return found == exports_.end() ? std::nullopt : std::optional(found->second);
}

std::string render(const Export& wanted, const Report& report) {
  return renderer_of(wanted.format)->render(report, wanted.options);
}

}  // namespace tensordiff::serve
