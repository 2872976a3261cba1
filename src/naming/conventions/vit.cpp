// ViT and CLIP of Hugging Face, OpenAI and torchvision.

#include "naming/convention.h"

namespace tensordiff {
namespace {

constexpr RoleRow kInLayer[] = {
    {Role::attention_norm, "layernorm.before layer.norm1 layer.norm.1"},
    {Role::fused_qkv, "self.attention.in.proj attn.in.proj"},
    {Role::attention_output, "self.attention.out.proj"},
    {Role::mlp_norm, "layernorm.after layer.norm2 layer.norm.2"},
    {Role::up, "mlp.fc1 mlp.0 mlp.linear.1"},
    {Role::activation, "mlp.1"},
    {Role::mlp_output, "mlp.fc2 mlp.2 mlp.3 mlp.linear.2"},
};
constexpr RoleRow kOutside[] = {
    {Role::patches,
     "embeddings.patch.embeddings.projection patch.embeddings.projection conv.proj "
     "embeddings.patch.embedding visual.conv1"},
    {Role::class_token,
     "embeddings.cls.token class.token class.embedding embeddings.class.embedding"},
    {Role::embedding, "embeddings.token.embedding token.embedding"},
    {Role::positions, "embeddings.position.embedding positional.embedding position.embedding"},
    {Role::final_norm, "layernorm post.layernorm ln.post ln.final ln"},
    {Role::logits, "heads.head"},
};

}  // namespace

constinit const Convention conventions::vit = {
    .name = "vit",
    .example = "vit.encoder.layer.3.layernorm_before.weight",
    .in_layer = kInLayer,
    .outside = kOutside,
    .layer_words = "resblocks",
    .wrappers = "vit vision visual",
};

}  // namespace tensordiff
