// The settings a model was trained with, as far as its files hold them.

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analyze/answer.h"
#include "analyze/study.h"

namespace tensordiff {

struct Setting {
  std::string name;  // "optimizer.param_groups.0.lr", "config.hidden_size"
  Datum a, b;        // Nothing where only the other side has it.
};

// Numbers of the optimizer, of args and hyperparameters, and all of config.json; not what only
// counts how far training has come. By name.
std::vector<Setting> settings_of(const Study& study);

// Learning rates of both sides by name: "lr", "learning_rate".
struct Rate {
  std::string name;
  std::optional<double> a, b;
};
std::vector<Rate> learning_rates(const Study& study);

}  // namespace tensordiff
