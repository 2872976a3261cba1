// What RoPE needs of the rows of q and k in a GGUF, by its general.architecture.
//
// Values show whether a converter turned the rows, but not whether it should have: where all layers
// agree, only the architecture tells. A file does not state it; llama.cpp knows it by the name.
// Source: llama.cpp (MIT), commit b21e4de745 of 2026-08-22: llama_model_rope_type() in
// src/llama-model.cpp, and which of the converters under conversion/ permute q and k.

#pragma once

#include <string_view>

namespace tensordiff {

// RoPE works on neighbours (LLAMA_ROPE_TYPE_NORM) and Hugging Face's on halves: rows are turned.
inline constexpr std::string_view kGgufTurned[] = {
    "arcee",       "arctic",      "baichuan",      "bailingmoe", "chameleon", "deci",    "deepseek",
    "granite",     "granite_swa", "granitehybrid", "granitemoe", "internlm2", "llada",   "llama",
    "llama-embed", "minicpm",     "mistral3",      "nanbeige",   "olmo",      "smollm3", "xverse"};

// The rows are those of Hugging Face: RoPE works on halves in both (LLAMA_ROPE_TYPE_NEOX and the
// multimodal ones), or on neighbours in both. No converter permutes these. Of an architecture in
// neither list the report says that its order is not known.
inline constexpr std::string_view kGgufKept[] = {"afmoe",
                                                 "apertus",
                                                 "bailingmoe2",
                                                 "bert",
                                                 "bitnet",
                                                 "codeshell",
                                                 "cogvlm",
                                                 "cohere2",
                                                 "cohere2moe",
                                                 "command-r",
                                                 "dbrx",
                                                 "dots1",
                                                 "dream",
                                                 "ernie4_5",
                                                 "ernie4_5-moe",
                                                 "eurobert",
                                                 "exaone",
                                                 "exaone-moe",
                                                 "exaone4",
                                                 "falcon",
                                                 "falcon-h1",
                                                 "gemma",
                                                 "gemma-embedding",
                                                 "gemma2",
                                                 "gemma3",
                                                 "gemma3n",
                                                 "gemma4",
                                                 "gemma4-assistant",
                                                 "glm4",
                                                 "glm4moe",
                                                 "gpt-oss",
                                                 "gptneox",
                                                 "grok",
                                                 "grovemoe",
                                                 "hunyuan-dense",
                                                 "hunyuan-moe",
                                                 "hunyuan_vl",
                                                 "hy_v3",
                                                 "jais2",
                                                 "jina-bert-v3",
                                                 "laguna",
                                                 "lfm2",
                                                 "lfm2moe",
                                                 "llada-moe",
                                                 "llama4",
                                                 "mellum",
                                                 "mimo2",
                                                 "minicpm3",
                                                 "minimax-01",
                                                 "minimax-m2",
                                                 "minimax-m3",
                                                 "modern-bert",
                                                 "nemotron",
                                                 "nomic-bert",
                                                 "nomic-bert-moe",
                                                 "olmo2",
                                                 "olmoe",
                                                 "openelm",
                                                 "orion",
                                                 "pangu-embedded",
                                                 "phi2",
                                                 "phi3",
                                                 "phimoe",
                                                 "plamo",
                                                 "plamo2",
                                                 "plamo3",
                                                 "qwen",
                                                 "qwen2",
                                                 "qwen2moe",
                                                 "qwen2vl",
                                                 "qwen3",
                                                 "qwen3moe",
                                                 "qwen3next",
                                                 "qwen3vl",
                                                 "qwen3vlmoe",
                                                 "rnd1",
                                                 "seed_oss",
                                                 "smallthinker",
                                                 "stablelm",
                                                 "starcoder2",
                                                 "step35",
                                                 "talkie"};

}  // namespace tensordiff
