#include "diagnose/operators/parameters.h"

#include <algorithm>
#include <cmath>

#include "align/view.h"
#include "tensor/reader.h"

namespace tensordiff::operators {
namespace {

constexpr uint64_t kVectorMax = uint64_t{1} << 20;

}  // namespace

std::string module_path(std::string_view name) {
  const std::size_t bracket = name.find('[');
  return std::string(name.substr(0, bracket));
}

// The start of the names of a module's parameters: its path as it is, or without its first words,
// or behind words of the checkpoint's, where just one such is there.
std::optional<std::string> Parameters::stem_of(std::string_view path) const {
  if (empty() || path.empty()) return std::nullopt;
  const auto has = [&](const std::string& stem) {
    const auto next = named_->lower_bound(stem);
    return next != named_->end() && next->first.starts_with(stem);
  };
  for (std::string_view rest = path;;) {
    if (std::string stem = std::string(rest) + "."; has(stem)) return stem;
    const std::size_t dot = rest.find('.');
    if (dot == std::string_view::npos) break;
    rest.remove_prefix(dot + 1);
    // What is left must still say where in the model it is.
    if (rest.find('.') == std::string_view::npos) break;
  }
  const std::string inner = "." + std::string(path) + ".";
  std::optional<std::string> found;
  for (const auto& [name, view] : *named_) {
    const std::size_t at = name.find(inner);
    if (at == std::string::npos) continue;
    std::string stem = name.substr(0, at + inner.size());
    if (found && *found != stem) return std::nullopt;
    found = std::move(stem);
  }
  return found;
}

std::vector<Named> Parameters::under(std::string_view path) const {
  std::vector<Named> found;
  const std::optional<std::string> stem = stem_of(path);
  if (!stem) return found;
  for (auto at = named_->lower_bound(*stem); at != named_->end(); ++at) {
    if (!at->first.starts_with(*stem)) break;
    found.push_back({at->first, at->first.substr(stem->size()), &at->second});
  }
  return found;
}

const View* Parameters::find(std::string_view path, std::string_view leaf) const {
  const std::optional<std::string> stem = stem_of(path);
  if (!stem) return nullptr;
  const auto at = named_->find(*stem + std::string(leaf));
  return at == named_->end() ? nullptr : &at->second;
}

std::vector<Named> Parameters::of_shape(const Shape& shape, bool either) const {
  std::vector<Named> found;
  if (empty()) return found;
  const Shape turned(shape.rbegin(), shape.rend());
  for (const auto& [name, view] : *named_)
    if (view.shape == shape || (either && view.shape == turned))
      found.push_back({name, name, &view});
  return found;
}

std::vector<double> read_vector(const View* view) {
  if (!view || view->elements() > kVectorMax || is_complex(view->dtype)) return {};
  const Result<Reader> reader = Reader::open(*view);
  if (!reader.ok()) return {};
  std::vector<double> values(view->elements());
  reader.value().values(0, values.size(), values.data());
  if (!reader.value().intact()) values.clear();
  return values;
}

Table::Table(std::vector<double> values, uint64_t columns, std::string name)
    : name_(std::move(name)), columns_(columns) {
  view_.shape = {columns == 0 ? 0 : values.size() / columns, columns};
  for (uint64_t row = 0; row < view_.shape[0]; ++row)
    held_.emplace(row, std::vector<double>(
                           values.begin() + static_cast<std::ptrdiff_t>(row * columns),
                           values.begin() + static_cast<std::ptrdiff_t>((row + 1) * columns)));
}

Table::Table(std::shared_ptr<const Table> of, std::function<void(std::span<double> row)> change)
    : view_(of->view_),
      name_(of->name_),
      columns_(of->columns_),
      of_(std::move(of)),
      change_(std::move(change)) {}

Table::Table(std::shared_ptr<const Table> of, std::vector<uint64_t> order)
    : view_(of->view_),
      name_(of->name_),
      columns_(of->columns_),
      of_(std::move(of)),
      order_(std::move(order)) {}

std::optional<double> Table::largest() const {
  const Result<Reader> reader = Reader::open(view_);
  if (!is_stored() || !reader.ok()) return std::nullopt;
  double most = 0;
  std::vector<double> line(columns());
  for (uint64_t row = 0; row < rows(); ++row) {
    reader.value().values(row * columns(), line.size(), line.data());
    for (const double value : line) most = std::max(most, std::abs(value));
  }
  return reader.value().intact() ? std::optional(most) : std::nullopt;
}

const double* Table::row(uint64_t index) const {
  const auto held = held_.find(index);
  if (held != held_.end()) return held->second.data();
  if (of_) {
    const double* from = of_->row(order_.empty() ? index : order_[index]);
    if (!from || !change_) return from;
    std::vector<double> values(from, from + columns());
    change_(values);
    return held_.emplace(index, std::move(values)).first->second.data();
  }
  if (view_.parts.empty() || index >= rows()) return nullptr;
  const Result<Reader> reader = Reader::open(view_);
  if (!reader.ok()) return nullptr;
  std::vector<double> values(columns());
  reader.value().values(index * columns(), values.size(), values.data());
  if (!reader.value().intact()) return nullptr;
  return held_.emplace(index, std::move(values)).first->second.data();
}

}  // namespace tensordiff::operators
