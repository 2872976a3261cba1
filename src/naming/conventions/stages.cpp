// Dumps of one file for each stage of a layer, {layer}_{stage}: "12_query".

#include "naming/convention.h"

namespace tensordiff {
namespace {

// The 13 stages of a layer in the order in which they are computed: known_stages().
constexpr RoleRow kStages[] = {
    {Role::attention_norm, "post.ln.pre.attn"},
    {Role::query, "#"},
    {Role::query_final, "#.final"},
    {Role::attention_heads, "post.attn"},
    {Role::setting, "scaling sliding"},
    {Role::attention_output, "post.attn.pre.resid"},
    {Role::mlp_norm, "pre.mlp"},
    {Role::mlp_output, "post.mlp"},
};

}  // namespace

constinit const Convention conventions::stages = {
    .name = "stages",
    .example = "12_query",
    .in_layer = {},
    .endings = kStages,
    .stages = kStages,
};

}  // namespace tensordiff
