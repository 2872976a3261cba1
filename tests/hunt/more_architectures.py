"""More small models for hooks.py, of other kinds: forecasts, sound, detection, scans, stages.

See architectures.py.
"""
import torch
import transformers as tf
from architectures import (IDS, TWO_KEYS, of_images, of_sound, of_timm, of_transformers, sizes,
                           tokens, two_towers)

GPT2_NAMES = dict(n_embd=lambda s: s["width"], n_layer=lambda s: s["layers"], n_positions=64,
                  n_head=lambda s: s["heads"])


def usual(size):
    """The usual names of a configuration."""
    return dict(hidden_size=size["width"], intermediate_size=size["inner"],
                num_hidden_layers=size["layers"], num_attention_heads=size["heads"])


def of_two(size, inner=56):
    """The usual names of one with an encoder and a decoder."""
    return dict(d_model=size["width"], encoder_layers=2, decoder_layers=2, encoder_ffn_dim=inner,
                encoder_attention_heads=size["heads"], decoder_attention_heads=size["heads"],
                decoder_ffn_dim=inner)


def prophetnet(rng):
    size = sizes(rng)
    config = tf.ProphetNetConfig(
        hidden_size=size["width"], encoder_ffn_dim=size["inner"], decoder_ffn_dim=size["inner"],
        num_encoder_layers=2, num_decoder_layers=2, num_encoder_attention_heads=size["heads"],
        num_decoder_attention_heads=size["heads"], max_position_embeddings=64,
        decoder_start_token_id=1, disable_ngram_loss=True, **IDS)
    return tf.ProphetNetForConditionalGeneration(config), {
        "input_ids": tokens(size["length"]), "decoder_input_ids": tokens(size["length"] - 2)}


def fsmt(rng):
    size = sizes(rng)
    config = tf.FSMTConfig(langs=["en", "de"], src_vocab_size=96, tgt_vocab_size=96,
                           max_position_embeddings=64, decoder_start_token_id=2, pad_token_id=0,
                           bos_token_id=1, eos_token_id=2, **of_two(size))
    return tf.FSMTForConditionalGeneration(config), {
        "input_ids": tokens(size["length"]), "decoder_input_ids": tokens(size["length"] - 2)}


def xlnet(rng):
    size = sizes(rng)
    config = tf.XLNetConfig(vocab_size=96, d_model=size["width"], n_layer=size["layers"],
                            n_head=size["heads"], d_inner=size["inner"], pad_token_id=0,
                            bos_token_id=1, eos_token_id=2)
    return tf.XLNetModel(config), {"input_ids": tokens(size["length"])}


def nystromformer(rng):
    config = tf.NystromformerConfig(max_position_embeddings=64, num_landmarks=4,
                                    segment_means_seq_len=16, conv_kernel_size=5,
                                    **usual(sizes(rng)), **IDS)
    return tf.NystromformerModel(config), {"input_ids": tokens(16)}


def speech2text(rng):
    size = sizes(rng)
    config = tf.Speech2TextConfig(
        max_source_positions=64, max_target_positions=32, num_conv_layers=2,
        conv_kernel_sizes=(5, 5), conv_channels=24, input_feat_per_channel=12,
        decoder_start_token_id=1, **of_two(size, 80), **IDS)
    return tf.Speech2TextForConditionalGeneration(config), {
        "input_features": torch.randn(2, 40, 12), "decoder_input_ids": tokens(size["length"])}


def ast(rng):
    config = tf.ASTConfig(patch_size=8, frequency_stride=6, time_stride=6, max_length=40,
                          num_mel_bins=24, **usual(sizes(rng)))
    return tf.ASTForAudioClassification(config), {"input_values": torch.randn(2, 40, 24)}


def patches_of_series(name, rng, **options):
    config = getattr(tf, name + "Config")(
        num_input_channels=3, context_length=48, patch_length=8, patch_stride=8,
        prediction_length=8, **options)
    return getattr(tf, name + "ForPrediction")(config), {"past_values": torch.randn(4, 48, 3)}


def forecast(name, rng):
    config = getattr(tf, name + "Config")(
        prediction_length=8, context_length=16, lags_sequence=[1, 2, 3], num_time_features=2,
        **of_two(dict(width=32, heads=4)))
    return getattr(tf, name + "Model")(config), {
        "past_values": torch.randn(2, 19).abs(), "past_time_features": torch.randn(2, 19, 2),
        "past_observed_mask": torch.ones(2, 19), "future_values": torch.randn(2, 8).abs(),
        "future_time_features": torch.randn(2, 8, 2)}


def encodec(rng):
    config = tf.EncodecConfig(num_filters=4, hidden_size=16, codebook_size=32, codebook_dim=16,
                              upsampling_ratios=[4, 2], num_lstm_layers=1, sampling_rate=1000,
                              target_bandwidths=[2.5])
    return tf.EncodecModel(config), {"input_values": torch.randn(2, 1, 160)}


def hifigan(rng):
    config = tf.SpeechT5HifiGanConfig(
        model_in_dim=12, upsample_initial_channel=32, upsample_rates=[4, 2],
        upsample_kernel_sizes=[8, 4], resblock_kernel_sizes=[3, 5],
        resblock_dilation_sizes=[[1, 3], [1, 3]])
    return tf.SpeechT5HifiGan(config), {"spectrogram": torch.randn(2, 16, 12)}


def musicgen(rng):
    config = tf.MusicgenDecoderConfig(
        vocab_size=32, hidden_size=32, ffn_dim=56, num_hidden_layers=2, num_attention_heads=4,
        num_codebooks=2, max_position_embeddings=64, pad_token_id=0, bos_token_id=0)
    return tf.MusicgenForCausalLM(config), {"input_ids": torch.randint(1, 32, (4, 9))}


def detection(rng):
    backbone = tf.ResNetConfig(embedding_size=8, hidden_sizes=[8, 12, 16, 24], depths=[1, 1, 1, 1],
                               layer_type="basic", out_features=["stage4"])
    config = tf.ConditionalDetrConfig(
        num_queries=7, use_timm_backbone=False, use_pretrained_backbone=False, backbone=None,
        backbone_config=backbone, **of_two(dict(width=32, heads=4)))
    return tf.ConditionalDetrForObjectDetection(config), {"pixel_values": torch.randn(2, 3, 64, 64)}


def vilt(rng):
    config = tf.ViltConfig(hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
                           intermediate_size=56, image_size=32, patch_size=8,
                           max_position_embeddings=32, **IDS)
    return tf.ViltModel(config), {
        "input_ids": tokens(9), "pixel_values": torch.randn(2, 3, 32, 32)}


STAGES = dict(depths=[1, 1, 1, 1], hidden_sizes=[16, 24, 32, 40])
FAMILIES = {
    "gpt_neo": lambda r: of_transformers("GPTNeo", r, num_layers=2, num_heads=4, hidden_size=48,
                                         attention_types=[[["global", "local"], 1]], window_size=5),
    "gemma": lambda r: of_transformers("Gemma", r, num_key_value_heads=1, head_dim=16),
    "xlnet": xlnet,
    "squeezebert": lambda r: of_transformers(
        "SqueezeBert", r, kind="Model", embedding_size=lambda s: s["width"],
        **{part + "_groups": 2 for part in ("q", "k", "v", "intermediate", "output")}),
    "nystromformer": nystromformer,
    "prophetnet": prophetnet,
    "recurrent_gemma": lambda r: of_transformers(
        "RecurrentGemma", r, num_hidden_layers=3, num_key_value_heads=1,
        lru_width=lambda s: s["width"], attention_window_size=8),
    "dbrx": lambda r: of_transformers(
        "Dbrx", r, d_model=48, n_heads=4, n_layers=2, max_seq_len=64,
        attn_config=dict(kv_n_heads=2, rope_theta=1e4),
        ffn_config=dict(ffn_hidden_size=40, moe_num_experts=4, moe_top_k=2)),
    "jetmoe": lambda r: of_transformers(
        "JetMoe", r, num_key_value_heads=lambda s: s["heads"] // 2, kv_channels=12,
        num_local_experts=4, num_experts_per_tok=2),
    "phimoe": lambda r: of_transformers("Phimoe", r, **TWO_KEYS, num_local_experts=4),
    "granitemoe": lambda r: of_transformers("GraniteMoe", r, **TWO_KEYS, num_local_experts=4,
                                            num_experts_per_tok=2),
    "xlm": lambda r: of_transformers("XLM", r, kind="Model", n_words=96,
                                     emb_dim=lambda s: s["width"], n_layers=lambda s: s["layers"],
                                     n_heads=lambda s: s["heads"]),
    "mobilebert": lambda r: of_transformers("MobileBert", r, kind="Model", embedding_size=24,
                                            intra_bottleneck_size=32, true_hidden_size=32),
    "ctrl": lambda r: of_transformers("CTRL", r, kind="LMHeadModel", dff=56, **GPT2_NAMES),
    "esm": lambda r: of_transformers("Esm", r, kind="Model", position_embedding_type="rotary",
                                     mask_token_id=3),
    "zamba": lambda r: of_transformers(
        "Zamba", r, num_key_value_heads=lambda s: s["heads"], num_hidden_layers=4,
        attn_layer_period=2, attn_layer_offset=1, use_mamba_kernels=False, mamba_d_state=4,
        mamba_dt_rank=4, n_mamba_heads=1),
    "megatron_bert": lambda r: of_transformers("MegatronBert", r, kind="Model"),
    "fsmt": fsmt,
    "led": lambda r: two_towers("LED", r, attention_window=4, max_encoder_position_embeddings=64,
                                max_decoder_position_embeddings=64),
    "speech2text": speech2text,
    "ast": ast,
    "sew": lambda r: of_sound("SEW", r, squeeze_factor=2),
    "conformer": lambda r: of_sound("Wav2Vec2Conformer", r, conv_depthwise_kernel_size=7),
    "encodec": encodec,
    "hifigan": hifigan,
    "musicgen": musicgen,
    "patchtst": lambda r: patches_of_series("PatchTST", r, d_model=32, num_attention_heads=4,
                                            num_hidden_layers=r.choice([2, 3]), ffn_dim=56),
    "patchtsmixer": lambda r: patches_of_series("PatchTSMixer", r, d_model=24, num_layers=3),
    "autoformer": lambda r: forecast("Autoformer", r),
    "time_series": lambda r: forecast("TimeSeriesTransformer", r),
    "conditional_detr": detection,
    "vilt": vilt,
    "levit": lambda r: of_images("Levit", r, side=64, image_size=64, hidden_sizes=[16, 24, 32],
                                 num_attention_heads=[2, 3, 4], depths=[1, 1, 1],
                                 key_dim=[8, 8, 8]),
    "focalnet": lambda r: of_images("FocalNet", r, image_size=32, embed_dim=16, depths=[2, 2],
                                    hidden_sizes=[16, 32], focal_levels=[2, 2],
                                    focal_windows=[3, 3]),
    "van": lambda r: of_images("Van", r, side=64, **STAGES),
    "swiftformer": lambda r: of_images("SwiftFormer", r, side=64, depths=[1, 1, 1, 1],
                                       embed_dims=[16, 24, 32, 40]),
    "mobilenetv2": lambda r: of_images("MobileNetV2", r, side=64, image_size=64,
                                       depth_multiplier=0.35),
    "hiera": lambda r: of_images("Hiera", r, side=64, image_size=[64, 64], patch_size=[7, 7],
                                 embed_dim=16, depths=[1, 1, 2, 1], num_heads=[1, 2, 4, 8]),
    "glpn": lambda r: of_images("GLPN", r, side=64, kind="ForDepthEstimation", **STAGES,
                                num_attention_heads=[1, 2, 2, 4], decoder_hidden_size=16),
    "res2net": lambda r: of_timm("res2net50_26w_4s", r, layers=(1, 1, 1, 1)),
    "dla": lambda r: of_timm("dla34", r, channels=(8, 8, 12, 16, 24, 32)),
    "volo": lambda r: of_timm("volo_d1_224", r, img_size=64),
    "nest": lambda r: of_timm("nest_tiny", r, img_size=64),
    "fastvit": lambda r: of_timm("fastvit_t8", r),
    "dpn": lambda r: of_timm("dpn48b", r),
    "convit": lambda r: of_timm("convit_tiny", r, img_size=64, depth=3, embed_dim=48),
    "davit": lambda r: of_timm("davit_tiny", r, embed_dims=(16, 24, 32, 40),
                               num_heads=(2, 2, 4, 4), depths=(1, 1, 1, 1)),
    "xception": lambda r: of_timm("xception41", r),
    "resnest": lambda r: of_timm("resnest14d", r),
    "efficientvit": lambda r: of_timm("efficientvit_b0", r),
    "mobilenetv4": lambda r: of_timm("mobilenetv4_conv_small_050", r),
    "vovnet": lambda r: of_timm("ese_vovnet19b_slim_dw", r),
}
