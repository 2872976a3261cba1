// A word for passes says so by itself ("step_3", "Pass00001", "iteration=4"). A bare number is the
// place in a list: it counts passes where the names behind it have layers of their own, and the
// same ones for each number. Behind names, numbers count passes where every module has the same
// ones: projections give one tensor at a time, and tensors of a tuple do not differ in their
// tokens.

#include "dumps/pass_names.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/text.h"
#include "dumps/grammar.h"
#include "naming/naming.h"

namespace tensordiff {
namespace {

constexpr std::size_t kFoldersMax = 6;  // In front of the mark: ranks, dates, what the user has.
constexpr std::string_view kWords[] = {"step",  "iteration", "iter", "pass", "decode",
                                       "token", "forward",   "fwd",  "call", "chunk"};

// "step_3", "step3", "step=3".
std::optional<int32_t> number_of_pass(std::string_view component) {
  const std::string text = lower(component);
  for (const std::string_view word : kWords) {
    if (!text.starts_with(word)) continue;
    std::string_view digits = std::string_view(text).substr(word.size());
    if (!digits.empty() && (digits[0] == '_' || digits[0] == '-' || digits[0] == '='))
      digits.remove_prefix(1);
    if (const std::optional<int32_t> number = whole_number(digits)) return number;
  }
  return std::nullopt;
}

// "layers.0.mlp.1" is pass 1 of layers.0.mlp, "layers.0.self_attn.1.0" the first tensor of pass 1.
std::optional<PassName> read_behind(std::string_view name) {
  std::string_view path = name;
  std::optional<int32_t> pass = take_output(path);
  if (!pass) return std::nullopt;
  std::string_view shorter = path;
  const std::optional<int32_t> before = take_output(shorter);
  if (!before || read_place(path).known || !gives_tuples(shorter))
    return PassName{*pass, std::string(path)};
  return PassName{*before, std::string(shorter).append(name.substr(path.size()))};
}

// Whether these are the passes of each, and not the tensors that each gives at once.
bool count_passes(const Catalog& catalog,
                  const std::map<std::string, std::set<int32_t>>& passes_of) {
  std::size_t single = 0;
  for (const auto& [rest, passes] : passes_of) {
    // All of them have the same: 0 and on.
    if (passes.size() < 2 || passes != passes_of.begin()->second || *passes.begin() != 0 ||
        *passes.rbegin() != static_cast<int32_t>(passes.size()) - 1)
      return false;
    single += read_place(rest).known && !gives_tuples(rest);
  }
  std::map<std::string, std::set<Shape>> shapes;
  for (const Tensor& tensor : catalog.tensors)
    if (const std::optional<PassName> name = read_behind(tensor.name))
      shapes[name->rest].insert(tensor.view.shape);
  const bool differ =
      std::ranges::all_of(shapes, [](const auto& each) { return each.second.size() > 1; });
  return 2 * single >= passes_of.size() || differ;
}

}  // namespace

bool gives_tuples(std::string_view path) {
  const Place place = read_place(path);
  if (is_rope_module(path)) return true;
  if (!place.known || place.parameter != Param::none || place.expert == Place::kAll) return false;
  return place.step == Role::layer_output || place.step == Role::attention || is_norm(place.step);
}

std::optional<PassName> PassNames::read(std::string_view name, Form form) {
  if (form == Form::behind) return read_behind(name);
  std::size_t start = 0;
  for (std::size_t i = 0; i < kFoldersMax; ++i) {
    const std::size_t end = name.find_first_of("./", start);
    if (end == std::string_view::npos || end + 1 == name.size()) return std::nullopt;
    const std::string_view component = name.substr(start, end - start);
    const std::optional<int32_t> number =
        form == Form::word ? number_of_pass(component) : whole_number(component);
    if (number)
      return PassName{*number, std::string(name.substr(0, start)).append(name.substr(end + 1))};
    if (form == Form::number) return std::nullopt;
    start = end + 1;
  }
  return std::nullopt;
}

PassNames::PassNames(const Catalog& catalog) {
  const std::size_t count = catalog.tensors.size();
  for (const Form form : {Form::word, Form::number, Form::behind}) {
    std::size_t marked = 0, layered = 0;
    std::map<std::string, std::set<int32_t>> passes_of;  // By what stands behind the mark.
    std::set<int32_t> passes;
    for (const Tensor& tensor : catalog.tensors) {
      std::optional<PassName> name = read(tensor.name, form);
      if (!name) continue;
      ++marked;
      layered += read_place(name->rest).layer >= 0;
      passes.insert(name->pass);
      passes_of[std::move(name->rest)].insert(name->pass);
    }
    if (count == 0 || marked < count || 2 * layered < count) continue;
    // Numbers that count something else have other things behind them.
    const auto repeats = [&](const auto& each) { return 2 * each.second.size() > passes.size(); };
    const auto repeated = static_cast<std::size_t>(std::ranges::count_if(passes_of, repeats));
    if (2 * repeated < passes_of.size()) continue;
    if (form == Form::number && *passes.begin() != 0) continue;
    if (form == Form::behind && !count_passes(catalog, passes_of)) continue;
    form_ = form;
    return;
  }
}

PassName PassNames::read(std::string_view name) const {
  std::optional<PassName> found = form_ == Form::none ? std::nullopt : read(name, form_);
  return found ? std::move(*found) : PassName{0, std::string(name)};
}

}  // namespace tensordiff
