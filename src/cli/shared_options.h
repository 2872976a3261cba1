// Options that several commands have alike.

#pragma once

#include "cli/command.h"

namespace tensordiff::shared_options {

inline constexpr Option kStats = {"--stats", "", "one line per changed tensor: mean and std",
                                  [](Settings& settings, std::string_view) -> Result<void> {
                                    settings.stats = true;
                                    return {};
                                  }};

inline constexpr Option kBrief = {"--brief", "", "print only the verdict line",
                                  [](Settings& settings, std::string_view) -> Result<void> {
                                    settings.render.brief = true;
                                    return {};
                                  }};

inline constexpr Option kExitZero = {"--exit-zero", "", "exit with 0 even if something differs",
                                     [](Settings& settings, std::string_view) -> Result<void> {
                                       settings.exit_zero = true;
                                       return {};
                                     }};

}  // namespace tensordiff::shared_options
