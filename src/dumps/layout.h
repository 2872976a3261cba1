// Dumps as other programs write them, and the list of their layouts.
//
// A layout reads the names (and texts) of one opened dump: which module gave a tensor, in which
// pass and on which rank, and which tensors are facts about the run (token ids, positions) and no
// results. arrange() then makes the Catalog that is compared: names without what changes from run
// to run, passes joined along their tokens, streams that are stored as two summands added up.
//
// To add one: write dumps/<name>.cpp and add it to the list below.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "tensor/catalog.h"

namespace tensordiff {

// What a tensor says about the run, where it is none of its results.
enum class RunFact : uint8_t {
  none,
  ids,        // Of the tokens of a pass.
  positions,  // Of the same, in their sequences.
  lengths,    // Of the sequences of a pass, with what is cached.
  other,      // Numbers of the configuration, request numbers: never compared.
};

// One index of an axis.
struct AxisIndex {
  std::size_t axis = 0;
  uint64_t index = 0;
};

// Which of the processes that share the tokens of a pass (context parallel) had a tensor.
struct TokenShare {
  int32_t index = 0, count = 1;
};

// What a layout reads from the name of one tensor.
struct Record {
  std::size_t tensor = 0;  // Its index in the catalog.
  std::string path;        // "model.layers.0.mlp": what it is, without what changes between runs.
  std::string name = {};   // What to call it in reports; empty: as the path, with the output.
  int32_t output = Place::kNone;  // Which of several outputs; none: there is one.
  int32_t pass = 0;               // Which run of the model, by any numbers that rise.
  int32_t rank = Place::kNone;    // Of tensor parallel processes.
  int64_t order = 0;              // Of computing, in its pass.
  std::optional<AxisIndex> part = std::nullopt;  // Only this of the tensor.
  RunFact fact = RunFact::none;
  TokenShare share = {};  // A pass of its own for each; those of one step make up its tokens.
};

// One dump, read by its layout.
struct Dump {
  std::vector<Record> records;  // Tensors without a record are not compared.
  std::vector<std::string> notes;
};

struct Layout {
  std::string_view name;
  std::string_view summary;  // One line for --help and docs/dumps.md.
  bool (*recognises)(const Catalog& catalog);
  Dump (*read)(const Catalog& catalog);
};

namespace layouts {

extern const Layout forward_hook;
extern const Layout sglang_dumper;
extern const Layout tensorrt_llm;
extern const Layout tensorrt_engine;
extern const Layout msprobe;
extern const Layout hidden_states;
extern const Layout transformer_lens;
extern const Layout llama_cpp;
extern const Layout transformer_engine;
extern const Layout flax;
extern const Layout onnx_values;
extern const Layout layer_lists;
extern const Layout layer_dicts;
extern const Layout transformers_debugger;
extern const Layout module_folders;
extern const Layout module_hooks;

// The first that recognises a dump reads it.
inline constexpr const Layout* kAll[] = {
    &forward_hook,  &sglang_dumper,         &tensorrt_llm,   &tensorrt_engine,    &msprobe,
    &hidden_states, &transformer_lens,      &llama_cpp,      &transformer_engine, &flax,
    &onnx_values,   &transformers_debugger, &module_folders, &layer_lists,        &layer_dicts,
    &module_hooks};

}  // namespace layouts

// Reads the dump by the layout of this name; "" finds it, "none" leaves the catalog as it is.
// Catalogs that are no dump of a known layout stay as they are. Says in notes what was assumed.
Result<std::vector<std::string>> arrange(Catalog& catalog, std::string_view layout = {});

// The same for both sides, of which the second may be none.
Result<std::vector<std::string>> arrange(Catalog& a, std::optional<Catalog>& b,
                                         std::string_view layout);

}  // namespace tensordiff
