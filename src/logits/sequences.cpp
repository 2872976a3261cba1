#include "logits/sequences.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "align/view.h"
#include "base/text.h"
#include "tensor/reader.h"

namespace tensordiff {
namespace {

// A classifier has fewer classes; a table of [positions, heads] is no vocabulary.
constexpr uint64_t kWordsMin = 32;
constexpr uint64_t kIdsMax = uint64_t{1} << 24;  // Ids, and log-probabilities, are read whole.

std::string_view last_part(std::string_view name) {
  return name.substr(name.find_last_of("/.:") + 1);
}

bool is_log_probs(const Tensor& tensor) {
  const std::string_view last = last_part(tensor.name);
  return is_float(tensor.view.dtype) && tensor.auxiliary.empty() &&
         (last.ends_with("log_probs") || last.ends_with("logprobs")) && !last.starts_with("top_");
}

bool is_named_logits(const Tensor& tensor) {
  const std::string_view last = last_part(tensor.name);
  return last.ends_with("logits") || (tensor.place.known && tensor.place.step == Role::logits &&
                                      tensor.place.parameter == Param::none);
}

// [words] of one position, [positions, words], [sequences, positions, words].
bool has_words(const Tensor& tensor) {
  const Shape& shape = tensor.view.shape;
  return is_float(tensor.view.dtype) && tensor.fault.empty() && tensor.shards.empty() &&
         !shape.empty() && shape.size() <= 3 && shape.back() >= kWordsMin && tensor.elements() > 0;
}

std::vector<double> values_of(const View& view) {
  if (view.elements() > kIdsMax) return {};
  const Result<Reader> reader = Reader::open(view);
  if (!reader.ok()) return {};
  std::vector<double> values(view.elements());
  reader.value().values(0, values.size(), values.data());
  return values;
}

std::vector<int64_t> integers_of(const View& view) {
  std::vector<int64_t> integers;
  for (const double value : values_of(view)) integers.push_back(static_cast<int64_t>(value));
  return integers;
}

class Search {
 public:
  explicit Search(const Catalog& catalog) : catalog_(catalog) {
    for (std::size_t i = 0; i < catalog.tensors.size(); ++i)
      by_name_.emplace(catalog.tensors[i].name, i);
  }

  std::vector<TokenSequence> all() {
    for (std::size_t i = 0; i < catalog_.tensors.size(); ++i)
      if (is_log_probs(catalog_.tensors[i])) add_log_probs(i);
    if (!found_.empty()) return std::move(found_);
    for (std::size_t i = 0; i < catalog_.tensors.size(); ++i)
      if (has_words(catalog_.tensors[i]) && is_named_logits(catalog_.tensors[i])) add_logits(i);
    if (!found_.empty() || catalog_.tensors.size() != 1) return std::move(found_);
    // An array without a name, as an npy file has one.
    if (has_words(catalog_.tensors[0])) add_logits(0);
    return std::move(found_);
  }

 private:
  // A tensor beside another one, by the last part of its name.
  const Tensor* beside(const std::string& name, std::initializer_list<std::string_view> lasts) {
    const std::string prefix = name.substr(0, name.size() - last_part(name).size());
    for (const std::string_view last : lasts)
      if (const auto at = by_name_.find(prefix + std::string(last)); at != by_name_.end())
        if (catalog_.tensors[at->second].fault.empty()) return &catalog_.tensors[at->second];
    return nullptr;
  }

  void add_log_probs(std::size_t index) {
    const Tensor& tensor = catalog_.tensors[index];
    const Shape& shape = tensor.view.shape;
    if (!tensor.fault.empty() || tensor.elements() == 0) return;
    if (shape.size() == 3 || (shape.size() == 2 && shape[1] >= kWordsMin && !is_padded(tensor)))
      return add_logits(index);
    const std::vector<double> values = values_of(tensor.view);
    if (values.empty() || shape.size() > 2) return;
    const uint64_t length = shape.back(), sequences = shape.size() == 2 ? shape[0] : 1;
    const Tensor* ids = beside(tensor.name, {"token_ids", "responses", "response_ids"});
    const Tensor* mask = beside(tensor.name, {"response_mask", "loss_mask"});
    const std::vector<int64_t> id =
        same_shape(ids, tensor) ? integers_of(ids->view) : std::vector<int64_t>();
    const std::vector<int64_t> on =
        same_shape(mask, tensor) ? integers_of(mask->view) : std::vector<int64_t>();
    for (uint64_t s = 0; s < sequences; ++s) {
      TokenSequence sequence{label(tensor.name, s, sequences), index, std::nullopt, {}};
      for (uint64_t i = s * length; i < (s + 1) * length; ++i) {
        sequence.log_probs.push_back(values[i]);
        if (!id.empty()) sequence.ids.push_back(id[i]);
        sequence.is_none.push_back(on.empty() ? false : on[i] == 0);
      }
      // Trainers fill up with zeros: where a mask says so, the sequence ends before them.
      while (sequence.is_none.size() > 1 && sequence.is_none.back()) {
        sequence.is_none.pop_back();
        sequence.log_probs.pop_back();
        if (!sequence.ids.empty()) sequence.ids.pop_back();
      }
      add_alternatives(tensor.name, sequence);
      found_.push_back(std::move(sequence));
    }
  }

  // [batch, response] of a trainer, and not [positions, words].
  bool is_padded(const Tensor& tensor) {
    return same_shape(beside(tensor.name, {"response_mask", "loss_mask"}), tensor) ||
           same_shape(beside(tensor.name, {"token_ids", "responses", "response_ids"}), tensor);
  }

  static bool same_shape(const Tensor* tensor, const Tensor& other) {
    return tensor && tensor->view.shape == other.view.shape;
  }

  void add_alternatives(const std::string& name, TokenSequence& sequence) {
    const Tensor* ids = beside(name, {"top_ids"});
    const Tensor* log_probs = beside(name, {"top_log_probs"});
    if (!ids || !same_shape(log_probs, *ids) || ids->view.shape.size() != 2) return;
    if (ids->view.shape[0] != sequence.log_probs.size()) return;
    const std::vector<int64_t> id = integers_of(ids->view);
    const std::vector<double> value = values_of(log_probs->view);
    const uint64_t each = ids->view.shape[1];
    for (uint64_t i = 0; i < sequence.log_probs.size(); ++i) {
      std::vector<Alternative>& list = sequence.alternatives.emplace_back();
      for (uint64_t k = i * each; k < (i + 1) * each && k < id.size(); ++k)
        if (!std::isnan(value[k])) list.push_back({id[k], value[k]});
      std::ranges::stable_sort(list, std::ranges::greater(), &Alternative::log_prob);
    }
  }

  void add_logits(std::size_t index) {
    const Tensor& tensor = catalog_.tensors[index];
    if (!has_words(tensor)) return;
    const Shape& shape = tensor.view.shape;
    const uint64_t sequences = shape.size() == 3 ? shape[0] : 1;
    const uint64_t positions = shape.size() == 1 ? 1 : shape[shape.size() - 2];
    for (uint64_t s = 0; s < sequences; ++s) {
      View view = shape.size() == 3   ? squeezed(narrowed(tensor.view, 0, s, 1), 0)
                  : shape.size() == 1 ? split(tensor.view, 0, Shape{1, shape[0]})
                                      : tensor.view;
      found_.push_back({label(tensor.name, s, sequences), index, std::move(view),
                        next_ids(tensor.name, s, sequences, positions)});
    }
  }

  // Position t of logits predicts token t + 1 of the input; the last one predicts none that is
  // known. Of a context of which only the last rows are there, these predict its last tokens.
  std::vector<int64_t> next_ids(const std::string& name, uint64_t sequence, uint64_t sequences,
                                uint64_t positions) {
    const std::vector<int64_t> ids = ids_beside(name);
    const uint64_t count = ids.size() / sequences;
    if (ids.empty() || count * sequences != ids.size() || count < positions) return {};
    const auto row = ids.begin() + static_cast<ptrdiff_t>(sequence * count);
    // All tokens have a row: the last row predicts what is not there.
    if (count == positions) {
      std::vector<int64_t> next(row + 1, row + static_cast<ptrdiff_t>(count));
      next.push_back(-1);
      return next;
    }
    return {row + static_cast<ptrdiff_t>(count - positions), row + static_cast<ptrdiff_t>(count)};
  }

  // In a dump ids are facts of the run, and no tensors (dumps/).
  std::vector<int64_t> ids_beside(const std::string& name) {
    const Tensor* tokens = beside(name, {"tokens", "input_ids", "token_ids", "ids"});
    if (tokens && is_integer(tokens->view.dtype)) return integers_of(tokens->view);
    std::vector<int64_t> ids;
    for (const Token& token : catalog_.tokens) {
      if (token.id < 0) return {};
      ids.push_back(token.id);
    }
    return ids;
  }

  static std::string label(const std::string& name, uint64_t sequence, uint64_t sequences) {
    return sequences == 1 ? name : fmt::format("{}[{}]", name, sequence);
  }

  const Catalog& catalog_;
  std::map<std::string, std::size_t> by_name_;
  std::vector<TokenSequence> found_;
};

// What may stand beside logits without being one of them.
bool is_companion(const Tensor& tensor) {
  if (is_alternatives(tensor.name)) return true;
  return !tensor.auxiliary.empty() || is_integer(tensor.view.dtype) || tensor.view.shape.empty();
}

}  // namespace

bool is_alternatives(std::string_view name) {
  const std::string_view last = last_part(name);
  return last == "top_log_probs" || last == "top_ids";
}

Result<std::vector<TokenSequence>> sequences_of(const Catalog& catalog) {
  std::vector<TokenSequence> sequences = Search(catalog).all();
  if (sequences.empty())
    return Error(
        "{}: no logits and no log-probabilities: neither a tensor named 'logits' of "
        "[positions, words] nor lists of log-probabilities",
        printable(catalog.path));
  return sequences;
}

bool holds_only_sequences(const Catalog& catalog) {
  // An array without a name is what its file is called.
  if (catalog.tensors.size() == 1 && catalog.tensors[0].name.empty()) {
    const std::string_view file =
        std::string_view(catalog.path).substr(catalog.path.rfind('/') + 1);
    return file.find("logits") != std::string_view::npos && has_words(catalog.tensors[0]);
  }
  std::size_t sequences = 0;
  for (const Tensor& tensor : catalog.tensors) {
    if (is_log_probs(tensor) || (is_named_logits(tensor) && has_words(tensor)))
      ++sequences;
    else if (!is_companion(tensor))
      return false;
  }
  return sequences > 0;
}

}  // namespace tensordiff
