"""Forward-hook dumps of many architectures with planted mistakes: are they found where they are?

    python3 tests/hunt/hooks.py [--seed 0] [--cases 6] [--family NAME]

Needs torch, transformers and timm, which the project itself does not: run it in an environment that
has them. Each family is a tiny model with random weights. A is a plain run in float32, captured by
a forward hook on every module: one entry for each module, where it was called first, with what it
gave last. B is another run of the same model, in float64 (another order of rounding), with one
mistake; or a clean one, in float64 and in bfloat16. Where a mistake shows first is not told by
whoever wrote it, but measured: it is the first module, in order of finishing, whose output changes
when the same run is made with and without it, of what the dump holds.
"""
import argparse
import collections
import copy
import json
import os
import pathlib
import random
import subprocess
import tempfile

import torch
import transformers as tf
from torch import nn

PROGRAM = os.environ.get("TENSORDIFF", "build/tensordiff")
IDS = dict(vocab_size=96, pad_token_id=0, bos_token_id=1, eos_token_id=2)


def decoder(name, **options):
    config = getattr(tf, name + "Config")(
        hidden_size=48, intermediate_size=80, num_hidden_layers=3, num_attention_heads=4,
        max_position_embeddings=64, **{**IDS, **options})
    return getattr(tf, name + "ForCausalLM")(config), {"input_ids": tokens(13)}


def tokens(count):
    return torch.randint(3, 96, (2, count))


def bart():
    config = tf.BartConfig(
        d_model=48, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
        decoder_attention_heads=4, encoder_ffn_dim=80, decoder_ffn_dim=80,
        max_position_embeddings=64, decoder_start_token_id=1, forced_eos_token_id=2, **IDS)
    return tf.BartForConditionalGeneration(config), {"input_ids": tokens(13),
                                                     "decoder_input_ids": tokens(9)}


def whisper():
    config = tf.WhisperConfig(
        d_model=48, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
        decoder_attention_heads=4, encoder_ffn_dim=80, decoder_ffn_dim=80, num_mel_bins=16,
        max_source_positions=20, max_target_positions=32, decoder_start_token_id=1,
        begin_suppress_tokens=[], **IDS)
    return tf.WhisperForConditionalGeneration(config), {
        "input_features": torch.randn(2, 16, 40), "decoder_input_ids": tokens(9)}


def clip():
    text = dict(hidden_size=48, intermediate_size=80, num_hidden_layers=2, num_attention_heads=4,
                max_position_embeddings=32, **IDS)
    vision = dict(hidden_size=40, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
                  image_size=32, patch_size=8)
    return tf.CLIPModel(tf.CLIPConfig(text_config=text, vision_config=vision, projection_dim=24)), {
        "input_ids": tokens(11), "pixel_values": torch.randn(2, 3, 32, 32)}


def albert():
    config = tf.AlbertConfig(
        embedding_size=24, hidden_size=48, intermediate_size=80, num_hidden_layers=3,
        num_attention_heads=4, max_position_embeddings=64, **IDS)
    return tf.AlbertModel(config), {"input_ids": tokens(13)}


def swin():
    config = tf.SwinConfig(image_size=32, patch_size=4, embed_dim=16, depths=[2, 2],
                           num_heads=[2, 4], window_size=4)
    return tf.SwinForImageClassification(config), {"pixel_values": torch.randn(2, 3, 32, 32)}


def wav2vec2():
    config = tf.Wav2Vec2Config(
        hidden_size=48, intermediate_size=80, num_hidden_layers=2, num_attention_heads=4,
        conv_dim=(16, 16, 16), conv_stride=(4, 2, 2), conv_kernel=(8, 3, 3),
        num_conv_pos_embeddings=8, num_conv_pos_embedding_groups=4, **IDS)
    return tf.Wav2Vec2Model(config), {"input_values": torch.randn(2, 400)}


def segformer():
    config = tf.SegformerConfig(
        num_encoder_blocks=3, depths=[1, 2, 1], sr_ratios=[4, 2, 1], hidden_sizes=[16, 24, 32],
        patch_sizes=[7, 3, 3], strides=[4, 2, 2], num_attention_heads=[1, 2, 4],
        mlp_ratios=[2, 2, 2], decoder_hidden_size=32)
    return tf.SegformerForSemanticSegmentation(config), {"pixel_values": torch.randn(2, 3, 32, 32)}


def of_timm(name, **options):
    import timm
    return timm.create_model(name, pretrained=False, num_classes=10, **options), {
        "x": torch.randn(2, 3, 64, 64)}


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


FAMILIES = {
    "gpt_neox": lambda: decoder("GPTNeoX"),
    "gemma2": lambda: decoder("Gemma2", num_key_value_heads=2, head_dim=12),
    "olmo2": lambda: decoder("Olmo2", num_key_value_heads=2),
    "falcon": lambda: decoder("Falcon", ffn_hidden_size=80),
    "phi": lambda: decoder("Phi"),
    "qwen2_moe": lambda: decoder("Qwen2Moe", num_key_value_heads=2, num_experts=4,
                                 num_experts_per_tok=2, moe_intermediate_size=32,
                                 shared_expert_intermediate_size=32),
    "opt": lambda: decoder("OPT", ffn_dim=80, word_embed_proj_dim=48),
    "bart": bart, "whisper": whisper, "clip": clip, "albert": albert, "swin": swin,
    "wav2vec2": wav2vec2, "segformer": segformer,
    "densenet": lambda: of_timm("densenet121", growth_rate=8, block_config=(2, 2, 2)),
    "efficientnet": lambda: of_timm("mobilenetv3_small_050"),
    "regnet": lambda: of_timm("regnetx_002"),
    "mixer": lambda: of_timm("mixer_s32_224", img_size=64),
    "unet": lambda: (UNet(), {"x": torch.randn(2, 3, 16, 16), "time": torch.randn(2, 8)}),
}


def with_spread_weights(model):
    """Initial weights hide biases, norms and scales: zeros and ones become numbers."""
    for name, weight in model.named_parameters():
        with torch.no_grad():
            if weight.ndim < 2:
                weight += 0.2 * torch.randn_like(weight)
            elif weight.std() < 0.1:
                weight.copy_(torch.randn_like(weight) / weight[0].numel() ** 0.5)
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.running_mean.normal_(0, 0.3)
            module.running_var.uniform_(0.5, 1.5)
    return model.eval()


def flat(name, value):
    if torch.is_tensor(value):
        yield name, value
    elif isinstance(value, (tuple, list)):
        for i, each in enumerate(value):
            yield from flat(f"{name}.{i}" if len(value) > 1 else name, each)
    elif isinstance(value, dict):  # The outputs of transformers are dicts.
        for key, each in value.items():
            yield from flat(f"{name}.{key}", each)


def captured(model, inputs):
    """The entries of the dump, and all calls in their order."""
    entries, calls, handles = {}, [], []

    def hook_of(name):
        def hook(module, args, output):
            for key, value in flat(name, output):
                if value.is_floating_point():
                    entries[key] = value.detach().clone()
                    calls.append((key, entries[key]))
        return hook

    for name, module in model.named_modules():
        if name and not isinstance(module, (nn.ModuleList, nn.ModuleDict)):
            handles.append(module.register_forward_hook(hook_of(name)))
    with torch.no_grad():
        model(**inputs)
    for handle in handles:
        handle.remove()
    return entries, calls


def as_type(value, dtype):
    return value.to(dtype) if torch.is_tensor(value) and value.is_floating_point() else value


def run_in(model, inputs, dtype):
    model = copy.deepcopy(model).to(dtype)
    return captured(model, {key: as_type(value, dtype) for key, value in inputs.items()})


def changed_output(module, change):
    module.register_forward_hook(lambda m, a, out: change(out) if torch.is_tensor(out) else None)


# What may go wrong with a module: what it does to it, and whether it can.
def lose_bias(m, rng): m.bias.data.zero_()
def transpose(m, rng): m.weight.data.copy_(m.weight.data.T.contiguous())
def turn_kernel(m, rng): m.weight.data.copy_(m.weight.data.transpose(2, 3).contiguous())
def lose_weight(m, rng): m.weight.data.fill_(1)
def other_eps(m, rng): m.eps = m.eps * 1e4 if m.eps < 1e-4 else 1e-2
def scaled(m, rng): changed_output(m, lambda y: y * rng.choice([0.5, 1.1, 0.125]))
def coarse(m, rng): changed_output(m, lambda y: y.to(torch.float8_e4m3fn).to(y.dtype))
def rolled(m, rng): changed_output(m, lambda y: y.roll(1, 1))
def noisy_rows(m, rng): changed_output(m, lambda y: torch.cat([y[:, :-1], 0 * y[:, -1:]], 1))
def in_training(m, rng): m.train()
def shifted_channels(m, rng): m.weight.data.copy_(m.weight.data.roll(1, 0))


def has(m, name):
    return getattr(m, name, None) is not None


MISTAKES = {
    "bias": (lose_bias, lambda m: has(m, "bias") and torch.is_tensor(m.bias)),
    "transposed": (transpose, lambda m: isinstance(m, nn.Linear) and
                   m.in_features == m.out_features),
    "kernel": (turn_kernel, lambda m: isinstance(m, nn.Conv2d) and m.kernel_size[0] > 1 and
               m.kernel_size[0] == m.kernel_size[1]),
    "norm_weight": (lose_weight, lambda m: "Norm" in type(m).__name__ and has(m, "weight")),
    "norm_eps": (other_eps, lambda m: "Norm" in type(m).__name__ and has(m, "eps")),
    "scale": (scaled, lambda m: True), "cast": (coarse, lambda m: True),
    "rolled": (rolled, lambda m: True), "empty": (noisy_rows, lambda m: True),
    "dropout": (in_training, lambda m: isinstance(m, nn.Dropout) and m.p > 0),
    "batch_stats": (in_training, lambda m: isinstance(m, nn.BatchNorm2d)),
    "rows": (shifted_channels, lambda m: has(m, "weight") and torch.is_tensor(m.weight) and
             m.weight.ndim > 1),
}


def last_calls(calls):
    """What the dump holds, in the order in which it was computed."""
    last = {name: i for i, (name, _) in enumerate(calls)}
    return [call for i, call in enumerate(calls) if last[call[0]] == i]


def first_change(before, after):
    """The names under which the first difference shows."""
    before, after = last_calls(before), last_calls(after)
    for (name, x), (_, y) in zip(before, after):
        if x.shape != y.shape or not torch.equal(x, y):
            return name, {other for other, z in after if z.shape == y.shape and torch.equal(z, y)}
    return None, set()


def plant(model, inputs, rng):
    """A copy of the model with one mistake, and where it shows first."""
    leaves = [(n, m) for n, m in model.named_modules() if n and not list(m.children())]
    before = captured(model, inputs)[1]
    for _ in range(50):
        kind = rng.choice(sorted(MISTAKES))
        made, fits = MISTAKES[kind]
        fitting = [n for n, m in leaves if fits(m)]
        if not fitting:
            continue
        at, wrong = rng.choice(fitting), copy.deepcopy(model)
        made(wrong.get_submodule(at), rng)
        torch.manual_seed(5)
        name, same = first_change(before, captured(wrong, inputs)[1])
        if name:
            return wrong, f"{kind} at {at}", {name} | same
    return None, "", set()


def report(folder, a, b):
    torch.save({k: v.contiguous() for k, v in a.items()}, folder / "a.pt")
    torch.save({k: v.contiguous() for k, v in b.items()}, folder / "b.pt")
    made = subprocess.run([PROGRAM, folder / "a.pt", folder / "b.pt", "-o", "report"],
                          capture_output=True, timeout=300, check=False)
    return made.returncode, json.loads(made.stdout)


def hunt(family, seed, cases, keep):
    torch.manual_seed(seed)
    rng = random.Random(seed)
    model, inputs = FAMILIES[family]()
    model = with_spread_weights(model)
    count = collections.Counter()
    a = captured(model, inputs)[0]
    for number in range(cases + 2):
        with tempfile.TemporaryDirectory() as made:
            folder = pathlib.Path(keep) / f"{family}_{number}" if keep else pathlib.Path(made)
            folder.mkdir(parents=True, exist_ok=True)
            if number < 2:
                dtype = (torch.float64, torch.bfloat16)[number]
                b = run_in(model, inputs, dtype)[0]
                if number == 0:
                    b = {k: v.float() for k, v in b.items()}
                code, said = report(folder, a, b)
                first = said["first_divergence"]
                count["clean"] += 1
                count["quiet"] += first is None
                if first:
                    print(f"{family} {number}: alarm on clean {dtype} at {first['name_a']}: "
                          f"{first['explanation']}")
                continue
            wrong, what, where = plant(model, inputs, rng)
            if wrong is None:
                continue
            torch.manual_seed(5)
            b = {k: v.float() for k, v in run_in(wrong, inputs, torch.float64)[0].items()}
            code, said = report(folder, a, b)
            first = said["first_divergence"]
            name = first["name_a"] if first else None
            wrongly = [d["name_a"] for d in said["next_divergences"] if d["name_a"] not in where]
            codes = [f["code"] for f in said["findings"] if first and f["pair"] == first["pair"]]
            count["bugs"] += 1
            count["located"] += name in where
            count["wrongly"] += len(wrongly)
            count["runs wrongly"] += bool(wrongly)
            count["named"] += name in where and bool(codes) and codes[0] != "operator"
            if name not in where or wrongly:
                print(f"{family} {number}: {what}: at {name} {codes}, want {sorted(where)[:3]}"
                      + (f"; wrongly {wrongly[:4]}" if wrongly else ""))
    return count


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cases", type=int, default=6)
    parser.add_argument("--family", action="append", choices=sorted(FAMILIES))
    parser.add_argument("--keep", help="a folder for the dumps")
    options = parser.parse_args()
    total = collections.Counter()
    for family in options.family or FAMILIES:
        try:
            count = hunt(family, options.seed, options.cases, options.keep)
        except (TypeError, ValueError, RuntimeError, AttributeError, ImportError) as problem:
            print(f"{family}: left out: {problem}")
            continue
        total.update(count)
        print(f"{family:13}", dict(count), flush=True)
    print("all          ", dict(total))


if __name__ == "__main__":
    main()
