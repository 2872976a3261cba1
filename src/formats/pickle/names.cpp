#include "formats/pickle/names.h"

#include "base/json.h"
#include "base/text.h"
#include "formats/pickle/walk.h"

namespace tensordiff::pickle {
namespace {

// The str of Python 2 is bytes of no known encoding: UTF-8 if it can be, else latin-1.
std::string name_text(const Node& node) {
  const std::string_view text = node.text.substr(0, kTensorNameMax);
  if (node.kind == Kind::text || is_utf8(text)) return valid_utf8(text);
  std::string out;
  for (const char c : text) append_utf8(static_cast<uint8_t>(c), out);
  return out;
}

// Cuts a name that is too long, between characters.
void append_limited(std::string_view text, std::string& name) {
  if (name.size() > kTensorNameMax) return;
  std::size_t room = std::min(kTensorNameMax - name.size(), text.size());
  while (room < text.size() && room > 0 && (static_cast<uint8_t>(text[room]) & 0xc0) == 0x80)
    --room;
  name += text.substr(0, room);
  if (room < text.size()) name.resize(std::max(name.size(), kTensorNameMax + 1), '~');
}

}  // namespace

std::string key_text(const Graph& graph, NodeId key) {
  constexpr std::size_t kTupleShown = 16;
  const Node& node = graph.at(key);
  switch (node.kind) {
    case Kind::text:
    case Kind::bytes:
      return name_text(node);
    case Kind::none:
      return "None";
    case Kind::boolean:
      return node.number ? "True" : "False";
    case Kind::integer:
      return std::to_string(node.number);
    case Kind::real:
      return number_text(graph.real(key));
    case Kind::global:
      return name_text(node);
    case Kind::tuple: {
      std::string out = "(";
      for (std::size_t i = 0; i < std::min(node.items.size(), kTupleShown); ++i) {
        const Kind inner = graph.kind(node.items[i]);
        out += (i ? ", " : "");
        out += inner == Kind::tuple ? "(...)" : key_text(graph, node.items[i]);
      }
      return out + (node.items.size() > kTupleShown ? ", ...)" : ")");
    }
    default:
      return "object";
  }
}

std::string Path::plain() const {
  std::string name;
  for (std::size_t i = 0; i < keys_.size(); ++i) {
    if (i) append_limited(".", name);
    append_limited(keys_[i], name);
  }
  return name;
}

std::string Path::quoted() const {
  bool dots = false;
  std::string name;
  for (std::size_t i = 0; i < keys_.size(); ++i) {
    const bool dotted = keys_[i].find('.') != std::string::npos;
    dots |= dotted;
    if (i) append_limited(".", name);
    append_limited(dotted ? "'" + keys_[i] + "'" : keys_[i], name);
  }
  return dots ? name : "";
}

void NamedTensors::add(const Path& path, Tensor tensor) {
  tensor.name = path.plain();
  name_bytes_ += tensor.name.size();
  std::string quoted = path.quoted();
  if (!quoted.empty() && quoted != tensor.name) {
    name_bytes_ += quoted.size();
    quoted_.emplace(tensors_.size(), std::move(quoted));
  }
  tensors_.push_back(std::move(tensor));
}

std::vector<Tensor> NamedTensors::take() && {
  std::unordered_map<std::string_view, std::size_t> uses;
  for (const Tensor& tensor : tensors_) ++uses[tensor.name];
  std::vector<std::size_t> ambiguous;
  for (const auto& [place, quoted] : quoted_)
    if (uses[tensors_[place].name] > 1) ambiguous.push_back(place);
  for (const std::size_t place : ambiguous) tensors_[place].name = quoted_[place];
  return std::move(tensors_);
}

}  // namespace tensordiff::pickle
