// One comparison as the options ask for it, shared by the commands that make some.

#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/settings.h"

namespace tensordiff {

// Whether these are parts of one model, as a glob gives them.
bool are_shards(const std::vector<std::string>& inputs);
inline constexpr std::string_view kShardsOfOne =
    ": shards of one model; pass its folder or its index instead";

// Whether compare can work with these inputs and settings.
Result<void> check_inputs(const Settings& settings, const std::vector<std::string>& inputs);

// What is asked of the pipeline.
Result<Request> request_of(const Settings& settings, const std::vector<std::string>& inputs);

// Shows a report as the options ask for it. The exit status.
int show_report(const Report& report, const Settings& settings);

// Compares what the inputs name, one or two, and holds the result to the baseline. `progress` may
// be empty.
Result<Report> compare_inputs(const Settings& settings, const std::vector<std::string>& inputs,
                              std::function<void(uint64_t done, uint64_t total)> progress);

// 0, 1 or 2, as the contract has it.
int exit_status(const Report& report, const Settings& settings);

// The renderer that -o and its relatives ask for.
const Renderer& renderer_of(const Settings& settings);

}  // namespace tensordiff
