// T5, whose layers have layers of their own: an encoder's second is the decoder's third.

#include "naming/convention.h"

namespace tensordiff {
namespace {

constexpr RoleRow kInLayer[] = {
    {Role::attention_norm, "layer.0.layer.norm"},
    {Role::query, "layer.0.selfattention.@"},
    {Role::attention_output, "layer.0.selfattention.o"},
    {Role::relative_bias, "layer.0.selfattention.relative.attention.bias"},
    {Role::cross_query, "layer.1.encdecattention.@"},
    {Role::cross_output, "layer.1.encdecattention.o"},
    // Of the decoder's cross attention: naming/dialect.cpp.
    {Role::mlp_norm, "layer.1.layer.norm layer.2.layer.norm"},
    {Role::gate, "layer.1.densereludense.wi.0 layer.2.densereludense.wi.0"},
    {Role::up,
     "layer.1.densereludense.wi layer.2.densereludense.wi layer.1.densereludense.wi.1 "
     "layer.2.densereludense.wi.1"},
    {Role::mlp_output, "layer.1.densereludense.wo layer.2.densereludense.wo"},
};

}  // namespace

constinit const Convention conventions::t5 = {
    .name = "t5",
    .example = "encoder.block.3.layer.0.SelfAttention.q.weight",
    .in_layer = kInLayer,
    .layer_words = "block",
    .wrappers = "encoder decoder",
};

}  // namespace tensordiff
