// Mamba, in the names of its authors, of Hugging Face and of GGUF.

#include "naming/convention.h"

namespace tensordiff {
namespace {

constexpr RoleRow kInLayer[] = {
    {Role::attention_norm, "norm"},
    {Role::ssm_in, "mixer.in.proj ssm.in mamba.in.proj"},
    {Role::ssm_conv, "mixer.conv1d ssm.conv1d mamba.conv1d"},
    {Role::ssm_x, "mixer.x.proj ssm.x mamba.x.proj"},
    {Role::ssm_dt, "mixer.dt.proj ssm.dt mamba.dt.proj"},
    {Role::ssm_a, "mixer.a.log ssm.a mamba.a.log"},
    {Role::ssm_d, "mixer.d ssm.d mamba.d"},
    {Role::ssm_out, "mixer.out.proj ssm.out mamba.out.proj"},
    {Role::attention, "mixer"},
};
constexpr RoleRow kOutside[] = {{Role::final_norm, "norm.f"}};

}  // namespace

constinit const Convention conventions::mamba = {
    .name = "mamba",
    .example = "backbone.layers.3.mixer.dt_proj.weight",
    .in_layer = kInLayer,
    .outside = kOutside,
    .wrappers = "backbone",
};

}  // namespace tensordiff
