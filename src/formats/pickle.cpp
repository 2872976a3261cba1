// A bare pickle, as pickle.dump writes it: numpy arrays and plain tensors have their bytes in it.

#include "base/text.h"
#include "formats/audit.h"
#include "formats/pickle/code.h"
#include "formats/pickle/machine.h"
#include "formats/pickle/torch_file.h"
#include "formats/pickle/walk.h"

namespace tensordiff {
namespace {

bool recognises(const Bytes& file) { return pickle::looks_like_pickle(file); }

Result<Catalog> open(const Input& input) {
  const Bytes file = TRY(input.source.open());
  pickle::Graph graph = TRY(pickle::read_pickle(file, 0, input.limits));
  // What follows could be anything, a torch file in disguise for one: half a reading is none.
  if (graph.end != file.size())
    return Error("byte {}: the pickle ends here, but {} bytes follow it", graph.end,
                 file.size() - graph.end);
  pickle::TorchFile alone{std::move(graph), {}, input.name, {}};
  return pickle::collect_tensors(std::move(alone), input.limits);
}

// Code in a file that is refused: what cannot be read may still be loaded by others.
std::vector<Problem> audit(const Input& input) {
  const Result<Bytes> file = input.source.open();
  if (!file.ok() || open(input).ok()) return {};
  return pickle::code_in(file.value(), 0, input.limits, "");
}

}  // namespace

constinit const Format formats::pickle = {
    .name = "pickle",
    .summary = "Python pickles of numpy arrays, tensors and numbers; nothing in them is run",
    .extensions = ".pkl .pickle",
    .recognises = recognises,
    .open = open,
};

constinit const Auditor audits::pickle = {
    .format = &formats::pickle,
    .audit = audit,
};

}  // namespace tensordiff
