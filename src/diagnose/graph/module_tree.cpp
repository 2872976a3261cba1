#include "diagnose/graph/module_tree.h"

#include <algorithm>
#include <charconv>

namespace tensordiff {
namespace {

constexpr std::size_t kDepthMax = 64;  // Words of a name that are looked at.
// Of the names in two modules, how many both have: layers that differ in a part are still layers.
constexpr double kAlike = 0.5;

// "attn[0]" and "attn@2" are outputs of "attn".
std::string_view module_name(std::string_view name) {
  while (name.ends_with(']') && name.rfind('[') != std::string_view::npos)
    name = name.substr(0, name.rfind('['));
  const std::size_t at = name.rfind('@');
  const bool call = at != std::string_view::npos && at + 1 < name.size() &&
                    name.find_first_not_of("0123456789", at + 1) == std::string_view::npos;
  return call ? name.substr(0, at) : name;
}

// The words of a path. A stage ("3_query") is inside its layer.
std::vector<std::string_view> words_of(const Site& site) {
  std::string_view name = module_name(site.a.name);
  std::vector<std::string_view> words;
  const std::size_t digits = site.a.place.layer_at.first + site.a.place.layer_at.size;
  if (site.a.place.staged && digits > 0 && digits < name.size()) {
    words.push_back(name.substr(0, digits));
    name.remove_prefix(digits + 1);
  }
  while (words.size() < kDepthMax) {
    const std::size_t end = name.find_first_of("./");
    words.push_back(name.substr(0, end));
    if (end == std::string_view::npos) break;
    name.remove_prefix(end + 1);
  }
  return words;
}

std::optional<int64_t> number_at_end(std::string_view word, std::string& stem) {
  const std::size_t last = word.find_last_not_of("0123456789");
  stem = word.substr(0, last == std::string_view::npos ? 0 : last + 1);
  const std::string_view digits = word.substr(stem.size());
  int64_t number = 0;
  const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  const bool whole = !digits.empty() && digits.size() <= 9 && read.ec == std::errc();
  return whole ? std::optional(number) : std::nullopt;
}

}  // namespace

std::size_t ModuleTree::add(const std::string& path, std::size_t parent, std::string_view word) {
  const auto [found, fresh] = by_path_.try_emplace(path, modules_.size());
  if (!fresh) return found->second;
  Module module;
  module.path = path;
  module.parent = parent;
  module.number = number_at_end(word, module.stem);
  modules_[parent].inside.push_back(modules_.size());
  modules_.push_back(std::move(module));
  return found->second;
}

ModuleTree::ModuleTree(const std::vector<Site>& sites) : modules_(1), of_site_(sites.size()) {
  for (std::size_t i = 0; i < sites.size(); ++i) {
    std::size_t at = Module::kRoot;
    std::string path;
    for (const std::string_view word : words_of(sites[i])) {
      path.append(".").append(word);
      at = add(path, at, word);
    }
    of_site_[i] = at;
    modules_[at].outputs.push_back(i);
  }
  give_tuples_to_modules();
  find_repeated();
}

// "attn.0" beside "attn.q_proj" is the first output of "attn": modules in a list have numbers only.
void ModuleTree::give_tuples_to_modules() {
  const auto is_number = [&](std::size_t i) {
    return modules_[i].number && modules_[i].stem.empty();
  };
  const auto is_item = [&](std::size_t i) { return is_number(i) && modules_[i].inside.empty(); };
  for (std::size_t i = 1; i < modules_.size(); ++i) {
    std::vector<std::size_t>& inside = modules_[i].inside;
    if (!modules_[i].outputs.empty() || std::ranges::all_of(inside, is_number)) continue;
    for (const std::size_t item : inside) {
      if (!is_item(item)) continue;
      for (const std::size_t site : modules_[item].outputs) {
        of_site_[site] = i;
        modules_[i].outputs.push_back(site);
      }
    }
    std::erase_if(inside, is_item);
    std::ranges::sort(modules_[i].outputs);
  }
}

bool ModuleTree::contains(std::size_t module, std::size_t other) const {
  while (other != Module::kRoot && other != module) other = modules_[other].parent;
  return other == module;
}

void ModuleTree::list_paths(std::size_t module, std::size_t skipped,
                            std::vector<std::string>& paths) const {
  for (const std::size_t inner : modules_[module].inside) {
    paths.push_back(modules_[inner].path.substr(skipped));
    list_paths(inner, skipped, paths);
  }
}

void ModuleTree::find_repeated() {
  // Modules of one list: of one parent and one stem.
  std::map<std::pair<std::size_t, std::string_view>, std::map<int64_t, std::size_t>> lists;
  for (std::size_t i = 1; i < modules_.size(); ++i)
    if (modules_[i].number && !modules_[i].inside.empty())
      lists[{modules_[i].parent, modules_[i].stem}].emplace(*modules_[i].number, i);
  for (const auto& [list, members] : lists) {
    std::vector<std::string> before;
    std::size_t last = Module::kRoot;
    for (const auto& [number, module] : members) {
      std::vector<std::string> paths, shared;
      list_paths(module, modules_[module].path.size(), paths);
      std::ranges::sort(paths);
      std::ranges::set_intersection(before, paths, std::back_inserter(shared));
      const std::size_t most = std::max(before.size(), paths.size());
      if (last != Module::kRoot && double(shared.size()) >= kAlike * double(most))
        modules_[module].repeated = modules_[last].repeated = true;
      before = std::move(paths);
      last = module;
    }
  }
}

std::optional<std::size_t> ModuleTree::block_of(std::size_t site) const {
  for (std::size_t at = of_site_[site]; at != Module::kRoot; at = modules_[at].parent)
    if (modules_[at].repeated) return at;
  return std::nullopt;
}

std::string kind_of(const Site& site) {
  std::string kind = site.a.name;
  std::erase_if(kind, [](char c) { return c >= '0' && c <= '9'; });
  return kind;
}

std::string_view last_word_of(const Site& site) {
  std::string_view name = site.a.name;
  while (!name.empty() && name.back() >= '0' && name.back() <= '9') name.remove_suffix(1);
  return name.substr(name.find_last_of("._") + 1);
}

void number_blocks(std::vector<Site>& sites) {
  const ModuleTree tree(sites);
  // The list that a site is in, and its number there; by its name alone where only one of a list
  // was dumped.
  const auto place_of = [&](std::size_t i) -> std::optional<std::pair<std::string, int64_t>> {
    if (const std::optional<std::size_t> block = tree.block_of(i)) {
      const Module& module = tree[*block];
      return std::pair(tree[module.parent].path + '.' + module.stem, *module.number);
    }
    if (!sites[i].layer) return std::nullopt;
    const std::string& name = sites[i].a.name;
    const std::size_t digits = std::min<std::size_t>(sites[i].a.place.layer_at.first, name.size());
    return std::pair("." + name.substr(0, digits), *sites[i].layer);
  };
  std::map<std::string, int64_t> largest, offsets;
  for (std::size_t i = 0; i < sites.size(); ++i)
    if (const auto place = place_of(i))
      largest[place->first] = std::max(largest[place->first], place->second);
  int64_t next = 0;
  for (std::size_t i = 0; i < sites.size(); ++i) {
    sites[i].block.reset();
    const auto place = place_of(i);
    if (!place) continue;
    const auto [offset, fresh] = offsets.try_emplace(place->first, next);
    // The first of a list is not the next of another.
    if (fresh) next += largest[place->first] + 2;
    sites[i].block = offset->second + place->second;
    sites[i].list = static_cast<std::size_t>(offset->second);
  }
}

}  // namespace tensordiff
