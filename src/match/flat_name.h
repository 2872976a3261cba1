// Names of FSDP: "model.layers.0._fsdp_wrapped_module._flat_param" is all of model.layers.0.

#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace tensordiff {

// The name without the wrappers that FSDP and its companions put between modules.
inline std::string without_fsdp(std::string name) {
  for (const std::string_view wrapper :
       {"_fsdp_wrapped_module.", "_checkpoint_wrapped_module.", "_fpw_module."})
    for (std::size_t at = name.find(wrapper); at != std::string::npos; at = name.find(wrapper))
      name.erase(at, wrapper.size());
  return name;
}

// The module whose parameters are flat in this tensor, with its last dot; nothing where the name
// is that of a plain parameter.
inline std::optional<std::string> module_of_flat(const std::string& name) {
  const std::size_t last = name.find_last_of("./") + 1;
  const std::string_view word = std::string_view(name).substr(last);
  if (word != "_flat_param" && word != "flat_param" && !word.starts_with("flat_param_"))
    return std::nullopt;
  return without_fsdp(name.substr(0, last));
}

}  // namespace tensordiff
