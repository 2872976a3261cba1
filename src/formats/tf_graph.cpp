// TensorFlow graphs: saved_model.pb, a MetaGraphDef (.meta) and a frozen GraphDef (.pb). What they
// hold of numbers is in their Const nodes. Operations are text to us; nothing of a graph is run.
//
//   SavedModel          1 schema version  2 MetaGraphDefs
//   MetaGraphDef        1 info (4 tags, 5 version of TensorFlow)  2 GraphDef
//   GraphDef            1 nodes  2 library  3, 4 versions
//   FunctionDefLibrary  1 functions: 1 signature (1 name)  3 nodes
//   NodeDef             1 name  2 op  5 attributes: 1 key  2 value (8 tensor)
//
// Variables are in a checkpoint beside it: variables/variables.index.

#include "base/text.h"
#include "formats/format.h"
#include "formats/limits.h"
#include "formats/protobuf.h"
#include "formats/tf_tensor.h"

namespace tensordiff {
namespace {

enum class GraphKind { none, saved_model, meta_graph, graph };

bool is_letter(char c) { return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_'; }

// A NodeDef, by its first fields: a name that is text, then an operation that is a word.
bool looks_like_node(ByteView message) {
  bool name = false, op = false;
  ProtoReader reader(message);
  while (const auto field = reader.next()) {
    if (field->number > 7 || field->wire != ProtoField::Wire::bytes) return false;
    if (field->number == 1) name = !field->bytes.empty();
    if (field->number == 2) op = !field->bytes.empty() && is_letter(field->text()[0]);
  }
  return reader.finish().ok() && name && op;
}

bool looks_like_graph(ByteView message) {
  bool node = false;
  ProtoReader reader(message);
  while (const auto field = reader.next()) {
    if (field->number > 5) return false;
    if (field->is_bytes(1) && !node && !(node = looks_like_node(field->bytes))) return false;
    if (field->number == 1 && field->wire != ProtoField::Wire::bytes) return false;
  }
  return reader.finish().ok() && node;
}

bool looks_like_meta_graph(ByteView message) {
  bool graph = false;
  ProtoReader reader(message);
  while (const auto field = reader.next()) {
    if (field->number > 7 || field->wire != ProtoField::Wire::bytes) return false;
    if (field->number == 2) graph = graph || looks_like_graph(field->bytes);
  }
  return reader.finish().ok() && graph;
}

GraphKind kind_of(ByteView file) {
  if (looks_like_graph(file)) return GraphKind::graph;
  if (looks_like_meta_graph(file)) return GraphKind::meta_graph;
  bool version = false, meta = false;
  ProtoReader reader(file);
  while (const auto field = reader.next()) {
    if (field->is_varint(1)) version = true;
    if (field->is_bytes(2)) meta = meta || looks_like_meta_graph(field->bytes);
    if (field->number > 2) return GraphKind::none;
  }
  return reader.finish().ok() && version && meta ? GraphKind::saved_model : GraphKind::none;
}

class Walk {
 public:
  Walk(const Input& input, const Bytes& file) : input_(input), file_(file) {}

  Result<Catalog> walk(GraphKind kind) {
    if (kind == GraphKind::saved_model) TRY(saved_model());
    if (kind == GraphKind::meta_graph) TRY(meta_graph(file_.view, ""));
    if (kind == GraphKind::graph) TRY(graph(file_.view, ""));
    make_names_unique(catalog_);
    return std::move(catalog_);
  }

 private:
  Result<void> saved_model() {
    std::vector<ByteView> graphs;
    ProtoReader reader(file_.view);
    while (const auto field = reader.next())
      if (field->is_bytes(2)) graphs.push_back(field->bytes);
    TRY(reader.finish());
    for (std::size_t i = 0; i < graphs.size(); ++i)
      TRY(meta_graph(graphs[i], graphs.size() > 1 ? fmt::format("graph_{}/", i) : ""));
    return {};
  }

  Result<void> meta_graph(ByteView message, const std::string& prefix) {
    ProtoReader reader(message);
    while (const auto field = reader.next()) {
      if (field->is_bytes(1)) TRY(about(field->bytes, prefix));
      if (field->is_bytes(2)) TRY(graph(field->bytes, prefix));
    }
    return reader.finish().in("meta graph");
  }

  Result<void> about(ByteView message, const std::string& prefix) {
    ProtoReader reader(message);
    while (const auto field = reader.next()) {
      if (field->is_bytes(4)) note(prefix + "tag", field->text());
      if (field->is_bytes(5)) note(prefix + "tensorflow_version", field->text());
    }
    return reader.finish().in("meta info");
  }

  Result<void> graph(ByteView message, const std::string& prefix) {
    bool versions = false;
    ProtoReader reader(message);
    while (const auto field = reader.next()) {
      versions |= field->number == 3 || field->number == 4;
      if (field->is_bytes(1)) TRY(node(field->bytes, prefix));
      if (field->is_bytes(2)) TRY(library(field->bytes, prefix));
    }
    if (!versions)
      catalog_.problems.push_back({"", "its graph has no version: the file may be cut short"});
    return reader.finish().in("graph");
  }

  Result<void> library(ByteView message, const std::string& prefix) {
    ProtoReader reader(message);
    while (const auto field = reader.next())
      if (field->is_bytes(1)) TRY(function(field->bytes, prefix));
    return reader.finish().in("function library");
  }

  Result<void> function(ByteView message, const std::string& prefix) {
    std::string name = "function";
    std::vector<ByteView> nodes;
    ProtoReader reader(message);
    while (const auto field = reader.next()) {
      if (field->is_bytes(3)) nodes.push_back(field->bytes);
      if (!field->is_bytes(1)) continue;
      ProtoReader signature(field->bytes);
      while (const auto part = signature.next())
        if (part->is_bytes(1)) name = part->text();
      TRY(signature.finish().in("signature"));
    }
    TRY(reader.finish().in("function"));
    for (const ByteView each : nodes) TRY(node(each, prefix + name + "/"));
    return {};
  }

  Result<void> node(ByteView message, const std::string& prefix) {
    std::string_view name, op;
    std::vector<ByteView> attributes;
    ProtoReader reader(message);
    while (const auto field = reader.next()) {
      if (field->is_bytes(1)) name = field->text();
      if (field->is_bytes(2)) op = field->text();
      if (field->is_bytes(5)) attributes.push_back(field->bytes);
    }
    TRY(reader.finish().in("node"));
    if (op != "Const") return {};
    for (const ByteView each : attributes)
      TRY(attribute(each, prefix + std::string(name))
              .in(fmt::format("node '{}'", printable(name))));
    return {};
  }

  Result<void> attribute(ByteView message, const std::string& name) {
    std::string_view key;
    std::optional<ByteView> tensor;
    ProtoReader reader(message);
    while (const auto field = reader.next()) {
      if (field->is_bytes(1)) key = field->text();
      if (!field->is_bytes(2)) continue;
      ProtoReader value(field->bytes);
      while (const auto part = value.next())
        if (part->is_bytes(8)) tensor = part->bytes;
      TRY(value.finish());
    }
    TRY(reader.finish());
    if (key != "value" || !tensor) return {};
    return add(name, TRY(tf::read_tensor(*tensor, input_.source, file_)));
  }

  Result<void> add(const std::string& name, tf::TensorValue value) {
    if (value.type == tf::kString) return note(name, value.strings), Result<void>();
    if (catalog_.tensors.size() >= input_.limits.tensors_max)
      return limit_hit("tensors", fmt::format("more than {} tensors", input_.limits.tensors_max));
    if (!value.view.ok()) {
      catalog_.tensors.push_back(broken_tensor(name, value.view.error().message()));
      return {};
    }
    Tensor tensor;
    tensor.name = name;
    tensor.view = std::move(value.view).value();
    catalog_.tensors.push_back(std::move(tensor));
    return {};
  }

  void note(std::string key, std::string_view value) {
    catalog_.metadata.push_back({std::move(key), std::string(value)});
  }

  const Input& input_;
  Bytes file_;
  Catalog catalog_;
};

bool recognises(const Bytes& file) { return kind_of(file.view) != GraphKind::none; }

Result<Catalog> open(const Input& input) {
  const Bytes file = TRY(input.source.open());
  const GraphKind kind = kind_of(file.view);
  if (kind == GraphKind::none) return Error("no graph: neither a SavedModel nor a GraphDef");
  return Walk(input, file).walk(kind);
}

}  // namespace

constinit const Format formats::tf_graph = {
    .name = "tf-graph",
    .summary = "TensorFlow SavedModels and frozen graphs: their constants",
    .extensions = ".pb .meta",
    .recognises = recognises,
    .open = open,
};

}  // namespace tensordiff
