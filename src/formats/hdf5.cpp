// HDF5: .h5 and .hdf5 files, the weights of Keras, MATLAB 7.3.
//
// The format is read by libhdf5, which many public files crash; it therefore runs in a process of
// its own that may do nothing but ask us for bytes (base/sandbox.h, cli/hdf5_child.cpp). It says
// where the datasets lie. We map contiguous data in place and undo the filters of chunks ourselves,
// when they are compared.
//
// A file may begin with a block of the user's: the signature is at byte 0, 512, 1024, 2048 ...

#include <algorithm>
#include <map>

#include "base/byte_owner.h"
#include "base/sandbox.h"
#include "base/text.h"
#include "formats/hdf5_chunks.h"
#include "formats/hdf5_wire.h"
#include "formats/keras_code.h"
#include "formats/limits.h"

namespace tensordiff {
namespace {

using hdf5::Dataset;
using hdf5::Layout;
using hdf5::Message;

constexpr std::string_view kSignature = "\x89HDF\r\n\x1a\n";
constexpr uint64_t kListingMax = 1ULL << 30;  // All that the other process may tell us.

// A block of the user's that is longer than this is not looked for in a remote file: each place
// would be fetched, for every file of any format.
constexpr std::size_t kRemoteReach = 1 << 16;

bool recognises(const Bytes& file) {
  std::string_view text = as_text(file.view);
  if (is_remote(file)) text = text.substr(0, kRemoteReach);
  for (uint64_t at = 0; at < text.size(); at = at == 0 ? 512 : at * 2)
    if (text.substr(at, kSignature.size()) == kSignature) return true;
  return false;
}

Result<View> view_of(Dataset dataset, const Bytes& file, const Limits& limits) {
  const std::optional<uint64_t> count = element_count(dataset.shape);
  if (dataset.shape.size() > kRankMax || !count)
    return Error("shape {} is too large", shape_text(dataset.shape));
  const uint64_t item = item_bytes(dataset.dtype), bytes = *count * item;
  if (dataset.layout == Layout::chunked) return chunked_view(std::move(dataset), file, limits);
  ByteSource source;
  if (dataset.layout == Layout::contiguous) {
    if (!range_fits(dataset.address, bytes, file.size()))
      return Error("{} bytes at {} reach past the end of the file", bytes, dataset.address);
    source = ByteSource(file.slice(dataset.address, bytes));
  } else if (dataset.layout == Layout::compact) {
    source = ByteSource(bytes_of(dataset.data));
  } else {  // Never written: the fill value everywhere, stored once.
    if (dataset.fill.size() != item) return Error("a fill value of odd size");
    View view = TRY(strided_view(dataset.dtype, dataset.shape, Strides(dataset.shape.size(), 0), 0,
                                 ByteSource(bytes_of(dataset.fill))));
    view.swapped = dataset.swapped;
    return view;
  }
  View view = TRY(contiguous_view(dataset.dtype, dataset.shape, std::move(source)));
  view.swapped = dataset.swapped;
  return view;
}

// The listing of one file by the other process.
class Listing {
 public:
  Listing(SandboxChild child, const Input& input, Bytes file)
      : child_(std::move(child)), input_(input), file_(std::move(file)) {}

  Result<Catalog> read() {
    const uint64_t size = file_.size();
    TRY(child_.write(std::as_bytes(std::span(&size, 1))));
    bool done = false;
    while (!done) done = TRY(read_message());
    for (Dataset& dataset : datasets_) add(std::move(dataset));
    for (const auto& [name, text] : attributes_)
      for (Problem& found : code_in_keras(text, name))
        catalog_.problems.push_back(std::move(found));
    make_names_unique(catalog_);
    return std::move(catalog_);
  }

  bool out_of_time() const { return child_.out_of_time(); }

 private:
  // Says whether it was the last.
  Result<bool> read_message() {
    std::byte head[5];
    TRY(child_.read(head));
    uint32_t bytes = 0;
    std::memcpy(&bytes, head + 1, sizeof(bytes));
    told_ += bytes;
    if (bytes > hdf5::kMessageBytesMax || told_ > kListingMax)
      return Error("the reader sent more than {} bytes", kListingMax);
    std::vector<std::byte> payload(bytes);
    TRY(child_.read(payload));
    switch (static_cast<Message>(head[0])) {
      case Message::read:
        TRY(answer(payload));
        return false;
      case Message::dataset:
        datasets_.push_back(TRY(hdf5::decode(payload)));
        if (datasets_.size() > input_.limits.tensors_max)
          return limit_hit("tensors",
                           fmt::format("more than {} datasets", input_.limits.tensors_max));
        return false;
      case Message::chunks:
        TRY(add_chunks(payload));
        return false;
      case Message::problem:
        catalog_.problems.push_back(TRY(hdf5::decode_problem(payload)));
        return false;
      case Message::attribute:
        TRY(add_attribute(payload));
        return false;
      case Message::failed:
        return Error("not a whole HDF5 file: {}", printable(as_text(payload).substr(4)));
      case Message::no_sandbox:
        return Error("needs a sandbox, which is missing here: {}",
                     printable(as_text(payload).substr(4)));
      case Message::done:
        return true;
    }
    return Error("the reader sent a malformed answer");
  }

  Result<void> answer(ByteView request) {
    uint64_t offset = 0;
    uint32_t count = 0;
    if (request.size() != sizeof(offset) + sizeof(count))
      return Error("the reader sent a malformed request");
    std::memcpy(&offset, request.data(), sizeof(offset));
    std::memcpy(&count, request.data() + sizeof(offset), sizeof(count));
    if (count > hdf5::kReadBytesMax || !range_fits(offset, count, file_.size()))
      return Error("it asks for bytes outside the file");
    // Copied, because bytes of a remote file come when we touch them, not when the system does.
    const ByteView asked = file_.view.subspan(offset, count);
    return child_.write(std::vector<std::byte>(asked.begin(), asked.end()));
  }

  Result<void> add_chunks(ByteView payload) {
    if (datasets_.empty()) return Error("chunks of no dataset");
    Dataset& last = datasets_.back();
    for (hdf5::Chunk& chunk : TRY(hdf5::decode_chunks(payload, last.shape.size())))
      last.chunks.push_back(std::move(chunk));
    return {};
  }

  Result<void> add_attribute(ByteView payload) {
    const Problem piece = TRY(hdf5::decode_problem(payload));
    std::string& text = attributes_[piece.where];
    text += piece.message;
    if (text.size() <= input_.limits.json_bytes_max) return {};
    return limit_hit("json", fmt::format("attribute '{}' has more than {}", printable(piece.where),
                                         human_bytes(input_.limits.json_bytes_max)));
  }

  bool is_matlab() const { return as_text(file_.view).starts_with("MATLAB 7.3 MAT-file"); }

  void add(Dataset dataset) {
    if (dataset.matlab_class == "char" || dataset.matlab_empty) return;  // Text, or nothing.
    Tensor tensor = broken_tensor(dataset.name, dataset.fault);
    if (dataset.matlab_class == "logical" && dataset.dtype == DType::u8)
      dataset.dtype = DType::boolean;
    if (tensor.fault.empty()) {
      Result<View> view = view_of(std::move(dataset), file_, input_.limits);
      if (view.ok()) tensor.view = std::move(view).value();
      if (!view.ok()) tensor.fault = view.error().message();
    }
    // MATLAB counts the axes from the other end.
    if (is_matlab() && tensor.fault.empty()) {
      std::reverse(tensor.view.shape.begin(), tensor.view.shape.end());
      for (Part& part : tensor.view.parts) {
        std::reverse(part.shape.begin(), part.shape.end());
        std::reverse(part.strides.begin(), part.strides.end());
      }
    }
    catalog_.tensors.push_back(std::move(tensor));
  }

  SandboxChild child_;
  const Input& input_;
  Bytes file_;
  Catalog catalog_;
  std::vector<Dataset> datasets_;
  std::map<std::string, std::string> attributes_;
  uint64_t told_ = 0;
};

Result<Catalog> open(const Input& input) {
  const Bytes file = TRY(input.source.open());
  if (!recognises(file)) return Error("the signature of HDF5 is missing");
  const SandboxLimits limits{input.limits.hdf5_seconds_max, input.limits.hdf5_memory_max};
  SandboxChild child = TRY(SandboxChild::start(hdf5::kTask, limits));
  Listing listing(std::move(child), input, file);
  Result<Catalog> catalog = listing.read().in("the HDF5 library");
  if (!catalog.ok() && listing.out_of_time())
    return limit_hit("hdf5-seconds", catalog.error().message());
  return catalog;
}

}  // namespace

constinit const Format formats::hdf5 = {
    .name = "hdf5",
    .summary = "HDF5 files, Keras weights, MATLAB 7.3; read in a sandbox",
    .extensions = ".h5 .hdf5 .keras .mat",
    .recognises = recognises,
    .open = open,
};

}  // namespace tensordiff
