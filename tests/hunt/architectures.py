"""Small models of many architectures, with random sizes and random weights, for hooks.py.

Each entry of FAMILIES makes a model and its inputs from a random.Random. sealed.py has families for
the last look only: once they have been looked into, they belong here.
"""
import torch
import transformers as tf
from torch import nn

IDS = dict(vocab_size=96, pad_token_id=0, bos_token_id=1, eos_token_id=2)


def tokens(count, batch=2):
    return torch.randint(3, 96, (batch, count))


def sizes(rng):
    """A width that all heads divide, heads, an inner width, layers and a number of tokens."""
    heads = rng.choice([2, 4])
    width = heads * rng.choice([8, 12, 16])
    return dict(width=width, heads=heads, inner=rng.choice([56, 80, 96]),
                layers=rng.choice([2, 3, 4]), length=rng.choice([7, 11, 13, 17]))


def of_transformers(name, rng, kind="ForCausalLM", **options):
    """A model with one tower, whose configuration has the usual names."""
    size = sizes(rng)
    config = dict(
        hidden_size=size["width"], intermediate_size=size["inner"],
        num_hidden_layers=size["layers"], num_attention_heads=size["heads"],
        max_position_embeddings=64, **IDS)
    config.update({key: value(size) if callable(value) else value
                   for key, value in options.items()})
    model = getattr(tf, name + kind)(getattr(tf, name + "Config")(**config))
    return model, {"input_ids": tokens(size["length"])}


def two_towers(name, rng, **options):
    """An encoder and a decoder that read sequences of other lengths."""
    size = sizes(rng)
    config = dict(
        d_model=size["width"], encoder_layers=2, decoder_layers=size["layers"],
        encoder_attention_heads=size["heads"], decoder_attention_heads=size["heads"],
        encoder_ffn_dim=size["inner"], decoder_ffn_dim=size["inner"], max_position_embeddings=64,
        decoder_start_token_id=1, forced_eos_token_id=2, **IDS)
    config.update(options)
    model = getattr(tf, name + "ForConditionalGeneration")(getattr(tf, name + "Config")(**config))
    return model, {"input_ids": tokens(size["length"]),
                   "decoder_input_ids": tokens(size["length"] - rng.choice([0, 2, 3]))}


def t5_like(name, rng, **options):
    size = sizes(rng)
    config = getattr(tf, name + "Config")(
        d_model=size["width"], d_kv=size["width"] // size["heads"], d_ff=size["inner"],
        num_layers=2, num_decoder_layers=size["layers"], num_heads=size["heads"],
        decoder_start_token_id=0, **{**IDS, **options})
    return getattr(tf, name + "ForConditionalGeneration")(config), {
        "input_ids": tokens(size["length"]), "decoder_input_ids": tokens(size["length"] - 2)}


def whisper(rng):
    size = sizes(rng)
    config = tf.WhisperConfig(
        d_model=size["width"], encoder_layers=2, decoder_layers=2,
        encoder_attention_heads=size["heads"], decoder_attention_heads=size["heads"],
        encoder_ffn_dim=80, decoder_ffn_dim=80, num_mel_bins=16, max_source_positions=20,
        max_target_positions=32, decoder_start_token_id=1, begin_suppress_tokens=[], **IDS)
    return tf.WhisperForConditionalGeneration(config), {
        "input_features": torch.randn(2, 16, 40), "decoder_input_ids": tokens(size["length"])}


def two_kinds(name, rng, **options):
    """Text and images."""
    text = dict(hidden_size=48, intermediate_size=80, num_hidden_layers=2, num_attention_heads=4,
                max_position_embeddings=32, **IDS)
    vision = dict(hidden_size=40, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
                  image_size=32, patch_size=8)
    config = getattr(tf, name + "Config")(text_config=text, vision_config=vision, **options)
    return getattr(tf, name + "Model")(config), {
        "input_ids": tokens(rng.choice([9, 11])), "pixel_values": torch.randn(2, 3, 32, 32)}


def of_images(name, rng, side=32, kind="ForImageClassification", **options):
    return getattr(tf, name + kind)(getattr(tf, name + "Config")(**options)), {
        "pixel_values": torch.randn(2, 3, side, side)}


def vit_like(name, rng, **options):
    size = sizes(rng)
    return of_images(name, rng, hidden_size=size["width"], intermediate_size=size["inner"],
                     num_hidden_layers=size["layers"], num_attention_heads=size["heads"],
                     image_size=32, patch_size=8, **options)


def of_sound(name, rng, kind="Model", **options):
    size = sizes(rng)
    config = getattr(tf, name + "Config")(
        hidden_size=size["width"], intermediate_size=size["inner"],
        num_hidden_layers=size["layers"], num_attention_heads=size["heads"],
        conv_dim=(16, 16, 16), conv_stride=(4, 2, 2), conv_kernel=(8, 3, 3),
        num_conv_pos_embeddings=8, num_conv_pos_embedding_groups=4, **{**IDS, **options})
    return getattr(tf, name + kind)(config), {"input_values": torch.randn(2, 400)}


def rwkv(rng):
    size = sizes(rng)
    config = tf.RwkvConfig(hidden_size=size["width"], num_hidden_layers=size["layers"],
                           attention_hidden_size=size["width"], context_length=64, **IDS)
    return tf.RwkvForCausalLM(config), {"input_ids": tokens(size["length"])}


def of_timm(name, rng, side=64, **options):
    import timm
    return timm.create_model(name, pretrained=False, num_classes=10, **options), {
        "x": torch.randn(2, 3, side, side)}


class Residual(nn.Module):
    """As in the U-Nets of diffusion models: one activation that is called twice."""

    def __init__(self, narrow, wide, time):
        super().__init__()
        self.norm1, self.norm2 = nn.GroupNorm(4, narrow), nn.GroupNorm(4, wide)
        self.conv1 = nn.Conv2d(narrow, wide, 3, padding=1)
        self.conv2 = nn.Conv2d(wide, wide, 3, padding=1)
        self.time_emb_proj = nn.Linear(time, wide)
        self.nonlinearity = nn.SiLU()
        self.conv_shortcut = nn.Conv2d(narrow, wide, 1) if narrow != wide else None

    def forward(self, x, time):
        y = self.conv1(self.nonlinearity(self.norm1(x)))
        y = y + self.time_emb_proj(time)[:, :, None, None]
        y = self.conv2(self.nonlinearity(self.norm2(y)))
        return (self.conv_shortcut(x) if self.conv_shortcut is not None else x) + y


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.time_embedding = nn.Sequential(nn.Linear(8, 16), nn.SiLU(), nn.Linear(16, 16))
        self.conv_in = nn.Conv2d(3, 8, 3, padding=1)
        self.down_blocks = nn.ModuleList([Residual(8, 8, 16), Residual(8, 16, 16)])
        self.downsamplers = nn.ModuleList([nn.Conv2d(8, 8, 3, 2, 1), nn.Conv2d(16, 16, 3, 2, 1)])
        self.mid_block = Residual(16, 16, 16)
        self.up_blocks = nn.ModuleList([Residual(32, 16, 16), Residual(24, 8, 16)])
        self.upsamplers = nn.ModuleList([nn.Conv2d(16, 16, 3, 1, 1), nn.Conv2d(16, 16, 3, 1, 1)])
        self.conv_norm_out = nn.GroupNorm(4, 8)
        self.conv_out = nn.Conv2d(8, 3, 3, padding=1)

    def forward(self, x, time):
        time = self.time_embedding(time)
        x, skips = self.conv_in(x), []
        for block, down in zip(self.down_blocks, self.downsamplers):
            x = block(x, time)
            skips.append(x)
            x = down(x)
        x = self.mid_block(x, time)
        for block, up in zip(self.up_blocks, self.upsamplers):
            x = up(nn.functional.interpolate(x, scale_factor=2.0))
            x = block(torch.cat([x, skips.pop()], 1), time)
        return self.conv_out(nn.functional.silu(self.conv_norm_out(x)))


class Recurrent(nn.Module):
    """Two recurrent layers and a head."""

    def __init__(self, cell, width):
        super().__init__()
        self.embed = nn.Embedding(96, width)
        self.layers = nn.ModuleList([cell(width, width, batch_first=True) for _ in range(2)])
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, 96)

    def forward(self, input_ids):
        x = self.embed(input_ids)
        for layer in self.layers:
            x = x + layer(x)[0]
        return self.head(self.norm(x))


def recurrent(cell, rng):
    return Recurrent(cell, rng.choice([24, 32])), {"input_ids": tokens(rng.choice([9, 12]))}


TWO_KEYS = dict(num_key_value_heads=2)
EXPERTS = dict(num_experts=4, num_experts_per_tok=2, moe_intermediate_size=32,
               shared_expert_intermediate_size=32)

FAMILIES = {
    "gpt_neox": lambda r: of_transformers("GPTNeoX", r, rotary_pct=0.5),
    "gemma2": lambda r: of_transformers("Gemma2", r, **TWO_KEYS, head_dim=12),
    "olmo": lambda r: of_transformers("Olmo", r, **TWO_KEYS),
    "falcon": lambda r: of_transformers("Falcon", r, ffn_hidden_size=lambda s: s["inner"]),
    "phi": lambda r: of_transformers("Phi", r),
    "qwen2_moe": lambda r: of_transformers("Qwen2Moe", r, **TWO_KEYS, **EXPERTS),
    "mixtral": lambda r: of_transformers("Mixtral", r, **TWO_KEYS, num_local_experts=4),
    "opt": lambda r: of_transformers("OPT", r, ffn_dim=lambda s: s["inner"],
                                     word_embed_proj_dim=lambda s: s["width"]),
    "gptj": lambda r: of_transformers("GPTJ", r, n_embd=lambda s: s["width"], n_positions=64,
                                      n_layer=lambda s: s["layers"], n_head=lambda s: s["heads"],
                                      rotary_dim=4),
    "bloom": lambda r: of_transformers("Bloom", r, n_layer=lambda s: s["layers"],
                                       n_head=lambda s: s["heads"]),
    "cohere": lambda r: of_transformers("Cohere", r, **TWO_KEYS),
    "roberta": lambda r: of_transformers("Roberta", r, kind="Model"),
    "distilbert": lambda r: of_transformers("DistilBert", r, kind="Model",
                                            dim=lambda s: s["width"], hidden_dim=80,
                                            n_layers=lambda s: s["layers"],
                                            n_heads=lambda s: s["heads"]),
    "albert": lambda r: of_transformers("Albert", r, kind="Model", embedding_size=24),
    "mamba": lambda r: of_transformers("Mamba", r, state_size=4, expand=2, time_step_rank=4),
    "rwkv": rwkv,
    "bart": lambda r: two_towers("Bart", r),
    "pegasus": lambda r: two_towers("Pegasus", r),
    "mt5": lambda r: t5_like("MT5", r, feed_forward_proj="gated-gelu"),
    "whisper": whisper,
    "clip": lambda r: two_kinds("CLIP", r, projection_dim=24),
    "deit": lambda r: vit_like("DeiT", r),
    "dinov2": lambda r: vit_like("Dinov2", r),
    "swin": lambda r: of_images("Swin", r, image_size=32, patch_size=4, embed_dim=16,
                                depths=[2, 2], num_heads=[2, 4], window_size=4),
    "segformer": lambda r: of_images(
        "Segformer", r, kind="ForSemanticSegmentation", num_encoder_blocks=3, depths=[1, 2, 1],
        sr_ratios=[4, 2, 1], hidden_sizes=[16, 24, 32], patch_sizes=[7, 3, 3], strides=[4, 2, 2],
        num_attention_heads=[1, 2, 4], mlp_ratios=[2, 2, 2], decoder_hidden_size=32),
    "wav2vec2": lambda r: of_sound("Wav2Vec2", r),
    "densenet": lambda r: of_timm("densenet121", r, growth_rate=8, block_config=(2, 2, 2)),
    "mobilenetv3": lambda r: of_timm("mobilenetv3_small_050", r),
    "regnet": lambda r: of_timm("regnetx_002", r),
    "mixer": lambda r: of_timm("mixer_s32_224", r, img_size=64),
    "cait": lambda r: of_timm("cait_xxs24_224", r, img_size=64, depth=3, embed_dim=48,
                              num_heads=4),
    "unet": lambda r: (UNet(), {"x": torch.randn(2, 3, 16, 16), "time": torch.randn(2, 8)}),
    "gru": lambda r: recurrent(nn.GRU, r),
    "stablelm": lambda r: of_transformers("StableLm", r, **TWO_KEYS),
    "starcoder2": lambda r: of_transformers("Starcoder2", r, **TWO_KEYS),
    "phi3": lambda r: of_transformers("Phi3", r, **TWO_KEYS),
    "granite": lambda r: of_transformers("Granite", r, **TWO_KEYS),
    "persimmon": lambda r: of_transformers("Persimmon", r),
    "codegen": lambda r: of_transformers("CodeGen", r, n_embd=lambda s: s["width"],
                                         n_layer=lambda s: s["layers"], n_positions=64,
                                         n_head=lambda s: s["heads"], rotary_dim=4),
    "mpt": lambda r: of_transformers("Mpt", r, d_model=lambda s: s["width"],
                                     n_layers=lambda s: s["layers"],
                                     n_heads=lambda s: s["heads"], max_seq_len=64),
    "olmoe": lambda r: of_transformers("Olmoe", r, **TWO_KEYS, num_experts=4,
                                       num_experts_per_tok=2),
    "electra": lambda r: of_transformers("Electra", r, kind="Model", embedding_size=24),
    "mpnet": lambda r: of_transformers("MPNet", r, kind="Model"),
    "deberta": lambda r: of_transformers("DebertaV2", r, kind="Model", relative_attention=True,
                                         pos_att_type=["c2p", "p2c"], position_buckets=16),
    "mamba2": lambda r: of_transformers("Mamba2", r, state_size=8, expand=2, n_groups=2,
                                        head_dim=8, num_heads=lambda s: s["width"] // 4,
                                        chunk_size=8),
    "mbart": lambda r: two_towers("MBart", r),
    "umt5": lambda r: t5_like("UMT5", r),
    "switch": lambda r: t5_like("SwitchTransformers", r, num_experts=4, num_sparse_encoder_layers=1,
                                num_sparse_decoder_layers=1),
    "siglip": lambda r: two_kinds("Siglip", r),
    "beit": lambda r: vit_like("Beit", r),
    "vit_mae": lambda r: of_images("Dinov2WithRegisters", r) if hasattr(
        tf, "Dinov2WithRegistersConfig") else vit_like("ViTMSN", r),
    "swinv2": lambda r: of_images("Swinv2", r, image_size=32, patch_size=4, embed_dim=16,
                                  depths=[2, 2], num_heads=[2, 4], window_size=4),
    "poolformer": lambda r: of_images("PoolFormer", r, side=64, depths=[1, 2, 1, 1],
                                      hidden_sizes=[16, 24, 32, 40]),
    "hubert": lambda r: of_sound("Hubert", r),
    "efficientnetv2": lambda r: of_timm("tf_efficientnetv2_b0", r),
    "vgg": lambda r: of_timm("vgg11_bn", r),
    "resnext": lambda r: of_timm("seresnext26d_32x4d", r),
    "gmlp": lambda r: of_timm("gmlp_s16_224", r, img_size=64),
    "convmixer": lambda r: of_timm("convmixer_768_32", r, dim=32, depth=3, patch_size=7),
    "inception": lambda r: of_timm("inception_v3", r, side=96, aux_logits=False),
    "xcit": lambda r: of_timm("xcit_nano_12_p16_224", r, img_size=64),
    "maxvit": lambda r: of_timm("maxvit_rmlp_pico_rw_256", r, img_size=64),
    "lstm": lambda r: recurrent(nn.LSTM, r),
}
