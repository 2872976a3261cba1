"""Small models of random weights, of as many architectures as transformers has here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

Built = tuple[torch.nn.Module, dict[str, Any]]


def _text(seed: int, tokens: int = 7, vocab: int = 96) -> dict[str, Any]:
    generator = torch.Generator().manual_seed(seed)
    return {"input_ids": torch.randint(0, vocab, (2, tokens), generator=generator)}


def _picture(seed: int, size: int = 32) -> dict[str, Any]:
    return {"pixel_values": torch.randn(2, 3, size, size,
                                        generator=torch.Generator().manual_seed(seed))}


_DECODER = dict(vocab_size=96, hidden_size=32, intermediate_size=48, num_hidden_layers=3,
                num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=64)
_ENCODER = dict(vocab_size=96, hidden_size=32, intermediate_size=48, num_hidden_layers=3,
                num_attention_heads=4, max_position_embeddings=64)
_VISION = dict(hidden_size=32, intermediate_size=48, num_hidden_layers=3, num_attention_heads=4,
               image_size=32, patch_size=8)


def _decoder(name: str, **more: Any) -> Callable[[int], Built]:
    def make(seed: int) -> Built:
        import transformers
        config = getattr(transformers, f"{name}Config")(**{**_DECODER, **more})
        return getattr(transformers, f"{name}ForCausalLM")(config), _text(seed)
    return make


def _model(name: str, inputs: Callable[[int], dict[str, Any]], head: str = "Model",
           **config: Any) -> Callable[[int], Built]:
    def make(seed: int) -> Built:
        import transformers
        made = getattr(transformers, f"{name}Config")(**config)
        return getattr(transformers, name + head)(made), inputs(seed)
    return make


def _both(seed: int) -> dict[str, Any]:
    return {**_text(seed), "decoder_input_ids": _text(seed + 1, 5)["input_ids"]}


def _sound(seed: int) -> dict[str, Any]:
    features = torch.randn(2, 20, 40, generator=torch.Generator().manual_seed(seed))
    return {"input_features": features, "decoder_input_ids": _text(seed, 5)["input_ids"]}


def _wave(seed: int) -> dict[str, Any]:
    return {"input_values": torch.randn(2, 800, generator=torch.Generator().manual_seed(seed))}


# The eleven of the design, on which the method may be tuned.
TUNED: dict[str, Callable[[int], Built]] = {
    "llama": _decoder("Llama"),
    "gpt2": _model("GPT2", _text, "LMHeadModel", vocab_size=96, n_embd=32, n_layer=3, n_head=4,
                   n_positions=64),
    "gemma2": _decoder("Gemma2", head_dim=8, sliding_window=4),
    "mixtral": _decoder("Mixtral", num_local_experts=4),
    "t5": _model("T5", _both, "ForConditionalGeneration", vocab_size=96, d_model=32, d_kv=8,
                 d_ff=48, num_layers=2, num_heads=4),
    "bert": _model("Bert", _text, "ForMaskedLM", **_ENCODER),
    "vit": _model("ViT", _picture, **_VISION),
    "convnext": _model("ConvNext", _picture, hidden_sizes=[16, 24, 32, 40], depths=[1, 1, 2, 1]),
    "resnet": _model("ResNet", _picture, embedding_size=16, hidden_sizes=[16, 24, 32, 40],
                     depths=[1, 1, 2, 1]),
    "whisper": _model("Whisper", _sound, "ForConditionalGeneration", vocab_size=96, d_model=32,
                      encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
                      decoder_attention_heads=4, encoder_ffn_dim=48, decoder_ffn_dim=48,
                      num_mel_bins=20, max_source_positions=20, max_target_positions=32,
                      pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1),
    "mamba": _model("Mamba", _text, "ForCausalLM", vocab_size=96, hidden_size=32,
                    num_hidden_layers=3, state_size=8),
}

# Others, to measure on what was never looked at while the method was changed.
HELD_OUT: dict[str, Callable[[int], Built]] = {
    "qwen2": _decoder("Qwen2"),
    "phi3": _decoder("Phi3", pad_token_id=0),
    "stablelm": _decoder("StableLm"),
    "cohere": _decoder("Cohere"),
    "olmoe": _decoder("Olmoe", num_experts=4, num_experts_per_tok=2),
    "gpt_neox": _model("GPTNeoX", _text, "ForCausalLM", **_ENCODER),
    "bloom": _model("Bloom", _text, "ForCausalLM", vocab_size=96, hidden_size=32, n_layer=3,
                    n_head=4),
    "opt": _model("OPT", _text, "ForCausalLM", vocab_size=96, hidden_size=32, ffn_dim=48,
                  num_hidden_layers=3, num_attention_heads=4, max_position_embeddings=64,
                  word_embed_proj_dim=32),
    "distilbert": _model("DistilBert", _text, "ForMaskedLM", vocab_size=96, dim=32, hidden_dim=48,
                         n_layers=3, n_heads=4, max_position_embeddings=64),
    "albert": _model("Albert", _text, embedding_size=16, **_ENCODER),
    "bart": _model("Bart", _both, "ForConditionalGeneration", vocab_size=96, d_model=32,
                   encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
                   decoder_attention_heads=4, encoder_ffn_dim=48, decoder_ffn_dim=48,
                   max_position_embeddings=64),
    "deit": _model("DeiT", _picture, **_VISION),
    "swin": _model("Swin", _picture, embed_dim=16, depths=[1, 1], num_heads=[2, 4], image_size=32,
                   patch_size=4, window_size=4),
    "hubert": _model("Hubert", _wave, hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
                     intermediate_size=48, conv_dim=(16, 16), conv_stride=(4, 4),
                     conv_kernel=(8, 4), num_conv_pos_embeddings=8,
                     num_conv_pos_embedding_groups=4, num_feat_extract_layers=2,
                     mask_time_prob=0.0),
}

# Those of which timm has an implementation too, with a head: other_models.py.
WITH_TWIN: dict[str, Callable[[int], Built]] = {
    "vit_classes": _model("ViT", _picture, "ForImageClassification", num_labels=5, **_VISION),
    "convnext_classes": _model("ConvNext", _picture, "ForImageClassification", num_labels=5,
                               hidden_sizes=[16, 24, 32, 40], depths=[1, 1, 2, 1]),
    "swin_classes": _model("Swin", _picture, "ForImageClassification", num_labels=5, embed_dim=16,
                           depths=[1, 2], num_heads=[2, 4], image_size=32, patch_size=4,
                           window_size=4),
    "resnet_classes": _model("ResNet", _picture, "ForImageClassification", num_labels=5,
                             embedding_size=64, hidden_sizes=[16, 24, 32, 40],
                             depths=[1, 1, 2, 1]),
}


def build(name: str, seed: int) -> Built:
    """A model in eval mode whose weights are large enough for mistakes to show, and its inputs."""
    make = {**TUNED, **HELD_OUT, **WITH_TWIN}[name]
    torch.manual_seed(seed)
    model, inputs = make(seed)
    # The usual initial weights (std 0.02) leave all but the residual stream near 0.
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() >= 2:
                fan_in = parameter[0].numel()
                parameter.normal_(0, fan_in ** -0.5)
            else:
                parameter.add_(0.1 * torch.randn_like(parameter))
    return model.eval(), inputs
