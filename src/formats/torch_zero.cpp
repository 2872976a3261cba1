// DeepSpeed ZeRO: the weights in float32, cut into one piece for each rank.
//
//   mp_rank_00_model_states.pt                          stages 1 and 2, or for each rank in stage 3
//   zero_pp_rank_0_mp_rank_00_model_states.pt           {module, param_shapes, buffer_names,
//                                                       shared_params, frozen_param_*}
//   [bf16_]zero_pp_rank_0_mp_rank_00_optim_states.pt    {optimizer_state_dict: {zero_stage,
//                                                       single_partition_of_fp32_groups (1, 2) or
//                                                       fp32_flat_groups (3)}}
//
// Stages 1 and 2: the pieces of a group, rank after rank, are all parameters of the group in a row.
// Stage 3: each parameter is cut into as many equal pieces as there are ranks, the last one padded;
// a rank holds its pieces of all parameters in a row, through all of its groups.
//
// Parameters are views of those pieces: nothing is copied. What else an optimizer keeps (moments)
// is not listed.

#include <algorithm>
#include <map>
#include <memory>

#include "base/text.h"
#include "formats/flat_parts.h"
#include "formats/folder.h"
#include "formats/pickle/rebuild.h"

namespace tensordiff {
namespace {

using pickle::Graph;
using pickle::Kind;
using pickle::NodeId;
using pickle::Rebuilder;

constexpr std::string_view kStates = "model_states.pt", kPieces = "optim_states.pt";

// One torch file and its values by path.
struct StateFile {
  pickle::TorchFile file;
  Rebuilder rebuilder;

  StateFile(pickle::TorchFile read, const Limits& limits)
      : file(std::move(read)), rebuilder(file.graph, file.storages, limits) {}

  const Graph& graph() const { return file.graph; }

  // The keys and values of a dict, of whatever class.
  std::vector<std::pair<std::string_view, NodeId>> entries(NodeId dict) const {
    const pickle::Call* call = graph().call(dict);
    const std::span<const NodeId> pairs = call ? call->pairs : graph().items(dict);
    std::vector<std::pair<std::string_view, NodeId>> found;
    for (std::size_t i = 0; i + 1 < pairs.size(); i += 2)
      if (const auto key = graph().string(pairs[i])) found.emplace_back(*key, pairs[i + 1]);
    return found;
  }

  // A number, or a member of an enum, which is the call of its class with the number.
  std::optional<int64_t> integer(NodeId id) const {
    const pickle::Call* call = graph().call(id);
    const std::span<const NodeId> args =
        call ? graph().items(call->args) : std::span<const NodeId>();
    return graph().integer(args.size() == 1 ? args[0] : id);
  }

  NodeId value(NodeId dict, std::string_view key) const {
    for (const auto& [name, id] : entries(dict))
      if (name == key) return id;
    return pickle::kNone;
  }
};

struct Parameter {
  std::string name;
  Shape shape;
  uint64_t elements;
};

struct Pieces {  // Of one rank: its flat tensors, one for each group.
  std::vector<View> groups;
};

// All that one model-parallel rank holds.
class Partition {
 public:
  Partition(const Limits& limits, std::string prefix)
      : limits_(limits), prefix_(std::move(prefix)) {}

  Result<void> add_states(const ByteSource& source) {
    states_.push_back(TRY(read(source)));
    return {};
  }

  Result<void> add_pieces(const ByteSource& source) {
    const std::unique_ptr<StateFile> file = TRY(read(source));
    const NodeId optimizer = file->value(file->graph().root, "optimizer_state_dict");
    const std::optional<int64_t> stage = file->integer(file->value(optimizer, "zero_stage"));
    if (!stage || *stage < 1 || *stage > 3) return Error("no ZeRO stage of 1, 2 or 3 in it");
    if (stage_ && *stage != stage_) return Error("its ZeRO stage is not that of the other files");
    stage_ = *stage;
    const std::string_view key =
        stage_ == 3 ? "fp32_flat_groups" : "single_partition_of_fp32_groups";
    const NodeId groups = file->value(optimizer, key);
    if (file->graph().kind(groups) != Kind::list) return Error("no list '{}' in it", key);
    Pieces pieces;
    for (const NodeId group : file->graph().items(groups)) {
      View view = TRY(file->rebuilder.tensor(group).in(key));
      if (!view.contiguous() || view.shape.size() != 1)
        return Error("{}: not a tensor of one axis", key);
      pieces.groups.push_back(std::move(view));
    }
    ranks_.push_back(std::move(pieces));
    return {};
  }

  Result<void> list(Catalog& catalog) {
    if (states_.empty()) return Error("no file of model states beside the optimizer's");
    TRY(list_parameters(catalog));
    list_buffers(catalog);
    TRY(list_frozen(catalog));
    list_shared(catalog);
    return {};
  }

 private:
  Result<std::unique_ptr<StateFile>> read(const ByteSource& source) const {
    const Bytes bytes = TRY(source.open());
    return std::make_unique<StateFile>(TRY(pickle::read_torch_file(bytes, limits_)), limits_);
  }

  Result<std::vector<Parameter>> parameters(NodeId shapes) const {
    std::vector<Parameter> found;
    for (const auto& [name, size] : states_[0]->entries(shapes)) {
      Shape shape = TRY(states_[0]->rebuilder.shape(size).in(printable(name)));
      const std::optional<uint64_t> count = element_count(shape);
      if (!count) return Error("parameter '{}': its shape is too large", printable(name));
      found.push_back({std::string(name), std::move(shape), *count});
    }
    return found;
  }

  Result<void> list_parameters(Catalog& catalog) {
    const NodeId shapes = states_[0]->value(states_[0]->graph().root, "param_shapes");
    if (states_[0]->graph().kind(shapes) != Kind::list) return Error("no list 'param_shapes'");
    const std::span<const NodeId> groups = states_[0]->graph().items(shapes);
    std::vector<Cursor> cursors(ranks_.size());  // Stage 3 goes on through all groups.
    for (std::size_t group = 0; group < groups.size(); ++group) {
      const std::vector<Parameter> listed = TRY(parameters(groups[group]));
      uint64_t first = 0;  // Of the group, in stages 1 and 2.
      for (const Parameter& parameter : listed) {
        Result<View> view =
            stage_ == 3 ? cut_by_rank(parameter, cursors) : cut_by_group(parameter, group, first);
        first += parameter.elements;
        add(catalog, parameter.name, std::move(view));
      }
    }
    return {};
  }

  View empty_view(const Parameter& parameter, DType dtype) const {
    View view;
    view.dtype = dtype;
    view.shape = parameter.shape;
    return view;
  }

  // Elements [first, first + count) of the pieces of all ranks in a row.
  Result<View> cut_by_group(const Parameter& parameter, std::size_t group, uint64_t first) const {
    View view = empty_view(parameter, DType::f32);
    if (parameter.elements == 0) return contiguous_view(DType::f32, parameter.shape, ByteSource());
    uint64_t begin = 0, done = 0;
    for (const Pieces& rank : ranks_) {
      if (group >= rank.groups.size()) return Error("a rank has no group {}", group);
      const View& piece = rank.groups[group];
      const uint64_t end = begin + piece.elements();
      const uint64_t from = std::max(begin, first + done);
      const uint64_t to = std::min(end, first + parameter.elements);
      if (from < to) {
        view.dtype = piece.dtype;
        view.swapped = piece.swapped;
        add_flat_part(view, from - first, to - from, piece.parts[0].source,
                      piece.parts[0].offset + (from - begin));
        done = to - first;
      }
      begin = end;
    }
    if (done < parameter.elements)
      return Error("the ranks hold {} of its {} elements", done, parameter.elements);
    return view;
  }

  struct Cursor {  // Where a rank's next parameter begins.
    std::size_t group = 0;
    uint64_t element = 0;
  };

  Result<View> cut_by_rank(const Parameter& parameter, std::vector<Cursor>& cursors) const {
    View view = empty_view(parameter, DType::f32);
    const uint64_t share = (parameter.elements + ranks_.size() - 1) / ranks_.size();
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      const uint64_t first = std::min(rank * share, parameter.elements);
      const uint64_t real = std::min(share, parameter.elements - first);  // The rest is padding.
      TRY(take(view, ranks_[rank], cursors[rank], {first, real, share}));
    }
    if (parameter.elements == 0) return contiguous_view(DType::f32, parameter.shape, ByteSource());
    return view;
  }

  struct Share {
    uint64_t first, real, stored;
  };
  static Result<void> take(View& view, const Pieces& pieces, Cursor& at, Share share) {
    uint64_t done = 0;
    while (done < share.stored) {
      if (at.group == pieces.groups.size()) return Error("a rank's pieces end before it");
      const View& group = pieces.groups[at.group];
      const uint64_t count = std::min(share.stored - done, group.elements() - at.element);
      const uint64_t real = done < share.real ? std::min(count, share.real - done) : 0;
      if (real > 0) {
        view.dtype = group.dtype;
        view.swapped = group.swapped;
        add_flat_part(view, share.first + done, real, group.parts[0].source,
                      group.parts[0].offset + at.element);
      }
      done += count;
      at.element += count;
      if (at.element == group.elements()) at = {at.group + 1, 0};
    }
    return {};
  }

  void list_buffers(Catalog& catalog) {
    StateFile& states = *states_[0];
    const NodeId module = states.value(states.graph().root, "module");
    const NodeId names = states.value(states.graph().root, "buffer_names");
    std::map<std::string_view, NodeId> held;
    for (const auto& [name, id] : states.entries(module)) held[name] = id;
    for (const NodeId id : states.graph().items(names)) {
      const auto found = held.find(states.graph().string(id).value_or(""));
      if (found != held.end())
        add(catalog, std::string(found->first), states.rebuilder.tensor(found->second));
    }
  }

  // Parameters that were not trained: whole in stages 1 and 2, else a fragment for each rank.
  Result<void> list_frozen(Catalog& catalog) {
    const NodeId shapes = states_[0]->value(states_[0]->graph().root, "frozen_param_shapes");
    const std::vector<Parameter> frozen = TRY(parameters(shapes));
    std::vector<std::map<std::string_view, NodeId>> fragments;
    for (const auto& states : states_) {
      fragments.emplace_back();
      const NodeId held = states->value(states->graph().root, "frozen_param_fragments");
      for (const auto& [name, id] : states->entries(held)) fragments.back()[name] = id;
    }
    for (const Parameter& parameter : frozen)
      add(catalog, parameter.name, join(parameter, fragments));
    return {};
  }

  Result<View> join(const Parameter& parameter,
                    const std::vector<std::map<std::string_view, NodeId>>& fragments) {
    View view = empty_view(parameter, DType::f32);
    uint64_t done = 0;
    for (std::size_t file = 0; file < states_.size() && done < parameter.elements; ++file) {
      const auto found = fragments[file].find(parameter.name);
      if (found == fragments[file].end()) return Error("a fragment of it is missing");
      const View piece = TRY(states_[file]->rebuilder.tensor(found->second));
      if (!piece.contiguous()) return Error("a fragment of it is not contiguous");
      const uint64_t count = std::min(piece.elements(), parameter.elements - done);
      view.dtype = piece.dtype;
      view.swapped = piece.swapped;
      if (count > 0) add_flat_part(view, done, count, piece.parts[0].source, piece.parts[0].offset);
      done += count;
    }
    if (done < parameter.elements)
      return Error("its fragments hold {} of its {} elements", done, parameter.elements);
    return view;
  }

  void list_shared(Catalog& catalog) {
    const StateFile& states = *states_[0];
    const NodeId shared = states.value(states.graph().root, "shared_params");
    for (const auto& [alias, original] : states.entries(shared)) {
      const auto name = states.graph().string(original);
      const auto found = name ? by_name_.find(prefix_ + std::string(*name)) : by_name_.end();
      if (found == by_name_.end()) continue;
      Tensor tensor = catalog.tensors[found->second];
      tensor.name = prefix_ + std::string(alias);
      catalog.tensors.push_back(std::move(tensor));
    }
  }

  void add(Catalog& catalog, const std::string& name, Result<View> view) {
    Tensor tensor = broken_tensor(prefix_ + name, view.ok() ? "" : view.error().message());
    if (view.ok()) tensor.view = std::move(view).value();
    by_name_.emplace(tensor.name, catalog.tensors.size());
    catalog.tensors.push_back(std::move(tensor));
  }

  const Limits& limits_;
  std::string prefix_;
  int64_t stage_ = 0;
  std::vector<std::unique_ptr<StateFile>> states_;  // One, or in stage 3 one for each rank.
  std::vector<Pieces> ranks_;
  std::map<std::string, std::size_t> by_name_;
};

// The number after a word: 3 for "zero_pp_rank_" in "zero_pp_rank_3_mp_rank_00_optim_states.pt".
uint64_t number_after(std::string_view file, std::string_view word) {
  const std::size_t at = file.find(word);
  uint64_t number = 0;
  for (std::size_t i = at + word.size(); at != std::string_view::npos && i < file.size(); ++i) {
    if (file[i] < '0' || file[i] > '9' || number > 1'000'000) break;
    number = number * 10 + static_cast<uint64_t>(file[i] - '0');
  }
  return number;
}

bool owns(std::string_view path) {
  return path.find('/') == std::string_view::npos &&
         path.find("mp_rank_") != std::string_view::npos &&
         (path.ends_with(kStates) || path.ends_with(kPieces));
}

bool starts(std::string_view file) {
  return file.find("zero_pp_rank_") != std::string_view::npos && file.ends_with(kPieces) &&
         owns(file);
}

Result<Catalog> open(const Folder& folder) {
  // By model-parallel rank, then by data-parallel rank: as numbers, 10 after 9.
  std::map<std::pair<uint64_t, uint64_t>, std::vector<std::string_view>> files;
  std::map<uint64_t, Partition> partitions;
  for (const auto& [path, source] : folder.files)
    if (owns(path))
      files[{number_after(path, "mp_rank_"), number_after(path, "zero_pp_rank_")}].push_back(path);
  if (files.empty()) return Error("no file of a rank");
  const bool several = files.rbegin()->first.first != files.begin()->first.first;
  for (const auto& [ranks, paths] : files) {
    const std::string prefix = several ? fmt::format("mp_rank_{:02}/", ranks.first) : "";
    Partition& partition = partitions.try_emplace(ranks.first, folder.limits, prefix).first->second;
    for (const std::string_view path : paths) {
      const ByteSource& source = folder.files.find(path)->second;
      TRY((path.ends_with(kStates) ? partition.add_states(source) : partition.add_pieces(source))
              .in(printable(path)));
    }
  }
  Catalog catalog;
  for (auto& [rank, partition] : partitions)
    TRY(partition.list(catalog).in(fmt::format("mp_rank_{:02}", rank)));
  make_names_unique(catalog);
  return catalog;
}

}  // namespace

constinit const FolderFormat folders::torch_zero = {
    .name = "torch-zero",
    .summary = "DeepSpeed ZeRO 1 to 3: parameters put together from the pieces of all ranks",
    .starts = starts,
    .owns = owns,
    .open = open,
};

}  // namespace tensordiff
