#include "formats/keras_code.h"

#include <algorithm>

#include "base/json.h"
#include "base/text.h"
#include "formats/pickle/danger.h"

namespace tensordiff {
namespace {

constexpr std::size_t kFoundMax = 100;  // The rest is counted.

// Functions of Keras itself that reach files or the network; config.json can call any function.
constexpr std::string_view kActing[] = {
    "get_file",   "load_model",      "load_weights",    "load_data",           "load_img",
    "save_model", "model_from_json", "extract_archive", "extract_open_archive"};

class Scan {
 public:
  explicit Scan(std::string where) : where_(std::move(where)) {}

  // As deep as the parser lets JSON be.
  void visit(const Json& value, std::string_view name) {
    for (const Json& item : value.array()) visit(item, name);
    if (!value.is_object()) return;
    const std::string_view own = value["config"]["name"].string();
    const std::string_view inner = own.empty() ? value["name"].string() : own;
    const std::string_view here = inner.empty() ? name : inner;
    look_at(value, here);
    for (const Json::Member& member : value.object()) visit(member.value, here);
  }

  std::vector<Problem> take() {
    std::ranges::stable_sort(found_, std::greater(), &Problem::severity);
    if (found_.size() > kFoundMax) {
      const std::size_t more = found_.size() - kFoundMax;
      found_.resize(kFoundMax);
      found_.push_back({where_, fmt::format("and {} more like these", more)});
    }
    return std::move(found_);
  }

 private:
  void add(std::string_view layer, const std::string& what, Severity severity) {
    found_.push_back(
        {where_, layer.empty() ? what : fmt::format("'{}' {}", printable(layer), what), severity});
  }

  void look_at(const Json& object, std::string_view layer) {
    const std::string_view type = object["class_name"].string(), module = object["module"].string();
    if (type == "Lambda" || type == "__lambda__")
      add(layer, fmt::format("is a {} of marshalled Python code, which was not run", type),
          Severity::dangerous);
    else if (type == "TFSMLayer" || type == "TorchModuleWrapper")
      add(layer, fmt::format("is a {}, which loads another model; it was not loaded", type),
          Severity::dangerous);
    else if (!type.empty() && !module.empty())
      look_at_name(type == "function" || type == "method" ? object["config"].string() : type,
                   module, layer);
    const std::string_view file = object["config"]["vocabulary"].string();
    if (!file.empty())
      add(layer, fmt::format("reads the file '{}' when it is loaded", printable(file)),
          Severity::dangerous);
  }

  void look_at_name(std::string_view name, std::string_view module, std::string_view layer) {
    const bool own = module == "keras" || module.starts_with("keras.") ||
                     module.starts_with("tf_keras") || module.starts_with("tensorflow.keras");
    const bool acts = std::ranges::find(kActing, name) != std::end(kActing);
    const std::string full = fmt::format("{}.{}", module, name);
    Severity severity = own ? Severity::note : pickle::severity_of(full);
    if (own && acts) severity = Severity::dangerous;
    if (severity != Severity::note)
      add(layer, fmt::format("holds a reference to '{}', which was not run", printable(full)),
          severity);
  }

  std::string where_;
  std::vector<Problem> found_;
};

}  // namespace

std::vector<Problem> code_in_keras(std::string_view json, const std::string& where) {
  const Result<Json> root = Json::parse(json);
  if (!root.ok())
    return {{where, fmt::format("not looked at for code: {}", root.error().message())}};
  Scan scan(where);
  scan.visit(root.value(), "");
  return scan.take();
}

}  // namespace tensordiff
