// The parameters of a checkpoint, found by the path of the module that they belong to.

#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tensor/tensor.h"

namespace tensordiff::operators {

using NamedViews = std::map<std::string, View, std::less<>>;

// The module that gave a tensor of a dump: its name without the place in a tuple.
std::string module_path(std::string_view name);

struct Named {
  std::string name;  // In the checkpoint.
  std::string leaf;  // What follows the path of the module: "weight", "experts.0.w1.weight".
  const View* view;
};

class Parameters {
 public:
  explicit Parameters(std::shared_ptr<const NamedViews> named) : named_(std::move(named)) {}

  bool empty() const { return !named_ || named_->empty(); }
  // All that stand under a module. Checkpoint and run may differ in a prefix ("model.").
  std::vector<Named> under(std::string_view path) const;
  // One of them by what follows the path; null where there is none.
  const View* find(std::string_view path, std::string_view leaf) const;
  // All of a shape, or of its transpose where `either` is set.
  std::vector<Named> of_shape(const Shape& shape, bool either) const;

 private:
  std::optional<std::string> stem_of(std::string_view path) const;

  std::shared_ptr<const NamedViews> named_;
};

// A vector of a checkpoint; empty where it is none or cannot be read.
std::vector<double> read_vector(const View* view);

// A matrix whose rows are read when they are needed, and then kept.
class Table {
 public:
  // The first axis are its rows; all others together its columns.
  Table(View view, std::string name)
      : view_(std::move(view)),
        name_(std::move(name)),
        columns_(rows() == 0 ? 0 : view_.elements() / rows()) {}
  // Values that were computed: [rows, columns].
  Table(std::vector<double> values, uint64_t columns, std::string name);
  // Another one with each row changed.
  Table(std::shared_ptr<const Table> of, std::function<void(std::span<double> row)> change);
  // Another one with its rows in an order.
  Table(std::shared_ptr<const Table> of, std::vector<uint64_t> order);

  uint64_t rows() const { return view_.shape[0]; }
  uint64_t columns() const { return columns_; }
  const std::string& name() const { return name_; }
  const View& view() const { return view_; }
  // Whether it is stored as it is.
  bool is_stored() const { return !view_.parts.empty() && !of_; }
  // The largest magnitude of all; nothing where it cannot be read.
  std::optional<double> largest() const;
  // Null where it cannot be read.
  const double* row(uint64_t index) const;

 private:
  View view_;
  std::string name_;
  uint64_t columns_ = 0;
  std::shared_ptr<const Table> of_ = nullptr;
  std::function<void(std::span<double> row)> change_ = nullptr;
  std::vector<uint64_t> order_ = {};
  mutable std::unordered_map<uint64_t, std::vector<double>> held_;
};
using TablePtr = std::shared_ptr<const Table>;

}  // namespace tensordiff::operators
