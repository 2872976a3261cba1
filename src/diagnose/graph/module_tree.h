// The tree of modules that names spell: "layers.0.mlp" is inside "layers.0".
//
// It tells what a name's words alone do not: what a module contains, and which modules are the
// repeated blocks of a model, whatever they are called.

#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "diagnose/site.h"

namespace tensordiff {

struct Module {
  static constexpr std::size_t kRoot = 0;

  std::string path;
  std::size_t parent = kRoot;
  std::string stem = {};                  // The last word without its number.
  std::optional<int64_t> number = {};     // That number: 3 of "layers.3" and of "layer3".
  std::vector<std::size_t> inside = {};   // Modules, as they come.
  std::vector<std::size_t> outputs = {};  // Sites: what it gives; several where that is a tuple.
  bool repeated = false;                  // Its neighbours in a list contain the same.
};

class ModuleTree {
 public:
  // Of the sites in their present order.
  explicit ModuleTree(const std::vector<Site>& sites);

  const Module& operator[](std::size_t module) const { return modules_[module]; }
  std::size_t module_of(std::size_t site) const { return of_site_[site]; }
  bool contains(std::size_t module, std::size_t other) const;

  // The innermost repeated module that a site is of; nothing where it is of none.
  std::optional<std::size_t> block_of(std::size_t site) const;

 private:
  std::size_t add(const std::string& path, std::size_t parent, std::string_view word);
  void give_tuples_to_modules();
  void find_repeated();
  void list_paths(std::size_t module, std::size_t skipped, std::vector<std::string>& paths) const;

  std::vector<Module> modules_;
  std::map<std::string, std::size_t, std::less<>> by_path_;
  std::vector<std::size_t> of_site_;
};

// A name without its numbers: the same entry in all layers.
std::string kind_of(const Site& site);

// The last word of a name, without a number: "proj" of "mixer.out_proj", "conv" of
// "mid_block.conv1".
std::string_view last_word_of(const Site& site);

// Numbers the blocks of a run: layers that follow each other in one list have numbers that do, and
// no others.
void number_blocks(std::vector<Site>& sites);

}  // namespace tensordiff
