// The weights of a model (--weights), found by layer and by what they are for.

#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "tensor/catalog.h"

namespace tensordiff {

// What a step multiplies by.
enum class Projection { query, key, value, attention_output, gate, up, down, logits };
std::string_view name_of(Projection projection);

class Weights {
 public:
  Weights() = default;
  explicit Weights(const Catalog& catalog);

  bool empty() const { return !named_ || named_->empty(); }
  // All of them, by their names.
  std::shared_ptr<const std::map<std::string, View, std::less<>>> named() const { return named_; }
  std::vector<int64_t> layers() const;

  // The matrix of a projection as [out, in]: once as it is stored and once transposed, as far as
  // the sizes allow. Empty where there is none of these sizes. Cut out of fused ones.
  std::vector<View> matrices(std::optional<int64_t> layer, Projection projection, uint64_t out,
                             uint64_t in) const;

  // How many features the MLP of a layer has inside, where `width` go in; 0: not known.
  uint64_t inner_size(std::optional<int64_t> layer, uint64_t width) const;

  // The bias of a projection; empty where there is none.
  std::vector<double> bias(std::optional<int64_t> layer, Projection projection, uint64_t out) const;

  // A vector of a layer by its role, such as the weight of the attention norm; empty where there is
  // none of this size.
  std::vector<double> vector(std::optional<int64_t> layer, Role role, Param parameter,
                             uint64_t size) const;

 private:
  // Layer, expert, what it is for and which parameter of it.
  using Key = std::tuple<int64_t, int64_t, Role, Param>;

  const View* find(std::optional<int64_t> layer, Role role, Param parameter) const;

  std::map<Key, View> tensors_;
  std::shared_ptr<const std::map<std::string, View, std::less<>>> named_;
};

}  // namespace tensordiff
