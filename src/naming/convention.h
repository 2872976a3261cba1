// How a family of models or a framework names its tensors: rows of data that the parser of names
// (naming/read_place.cpp) looks up.
//
// To add one: write naming/conventions/<name>.cpp and add it to the list below.

#pragma once

#include <span>
#include <string_view>

#include "tensor/place.h"

namespace tensordiff {

// The spellings of one role: words in lower case joined by dots ("self.attn.o.proj" for
// "self_attn.o_proj"), spellings by spaces; "-" is the empty one, the layer itself. '@' stands for
// q, k and v, '#' for query, key and value: such a row gives three roles, of which `role` is the
// one of the query.
struct RoleRow {
  Role role;
  std::string_view spellings;
};

struct Convention {
  std::string_view name;
  std::string_view example;               // A name that it reads.
  std::span<const RoleRow> in_layer;      // What stands behind the number of a layer.
  std::span<const RoleRow> outside = {};  // The whole name, but for wrappers.
  // Whatever stands before: for names that follow no convention but in their last words.
  std::span<const RoleRow> endings = {};
  // Of names of the form {layer}_{stage}: the whole stage.
  std::span<const RoleRow> stages = {};
  std::string_view layer_words = {};  // The number of a layer follows one of these: "h blocks".
  std::string_view wrappers = {};     // What a whole model is wrapped in: "transformer".
};

namespace conventions {

extern const Convention hugging_face;
extern const Convention gpt2;
extern const Convention neox;
extern const Convention bert;
extern const Convention bart;
extern const Convention t5;
extern const Convention vit;
extern const Convention timm;
extern const Convention deepseek;
extern const Convention mamba;
extern const Convention meta_llama;
extern const Convention litgpt;
extern const Convention megatron;
extern const Convention vllm;
extern const Convention tensorrt_llm;
extern const Convention gguf;
extern const Convention transformer_lens;
extern const Convention flax;
extern const Convention keras;
extern const Convention diffusers;
extern const Convention captures;
extern const Convention stages;

// No two of them may read one spelling as different roles; a test sees to it.
inline constexpr const Convention* kAll[] = {
    &hugging_face,     &gpt2,  &neox,       &bert,      &bart,     &t5,    &vit,          &timm,
    &deepseek,         &mamba, &meta_llama, &litgpt,    &megatron, &vllm,  &tensorrt_llm, &gguf,
    &transformer_lens, &flax,  &keras,      &diffusers, &captures, &stages};

}  // namespace conventions

}  // namespace tensordiff
