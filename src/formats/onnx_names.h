// What the initializers of an ONNX graph stand for, where exporters give them names that say
// nothing: "onnx::MatMul_253", "val_31".
//
// The node that reads one tells. TorchScript's exporter names nodes by their modules,
// "/bert/encoder/layer.0/attention/self/query/MatMul"; the newer one has these as metadata,
// pkg.torch.onnx.name_scopes: "['', 'model', 'model.layers.0', 'linear']".

#pragma once

#include <map>
#include <string>
#include <string_view>

#include "formats/protobuf.h"
#include "tensor/catalog.h"

namespace tensordiff::onnx {

class Readers {
 public:
  // Notes what a node of the outermost graph reads.
  void add(ByteView node);

  // Gives tensors the names that their readers tell, and says which are constants of the graph.
  void name(Catalog& catalog) const;

 private:
  // What is meant, by the name of what is read; "" where readers do not agree.
  std::map<std::string, std::string, std::less<>> meant_;
};

}  // namespace tensordiff::onnx
