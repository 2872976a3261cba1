"""Runs of a model with and without a mistake, captured by forward hooks, for hooks.py."""
import copy
import json
import random

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

import training

PRODUCTS = {
    nn.functional.linear, torch.matmul, torch.Tensor.matmul, torch.Tensor.__matmul__, torch.bmm,
    torch.Tensor.bmm, torch.baddbmm, torch.Tensor.baddbmm, torch.addmm, torch.einsum,
    nn.functional.conv1d, nn.functional.conv2d, torch.conv1d, torch.conv2d,
    nn.functional.scaled_dot_product_attention,
}


def rounded(value, bits):
    """To so many bits of fraction, to nearest."""
    if not torch.is_tensor(value) or value.dtype not in (torch.float32, torch.float64):
        return value
    wide = value.dtype == torch.float64
    drop = (52 if wide else 23) - bits
    words = value.contiguous().view(torch.int64 if wide else torch.int32)
    words = (words + (1 << (drop - 1)) - 1 + ((words >> drop) & 1)) & ~((1 << drop) - 1)
    return words.view(value.dtype)


class CoarseProducts(TorchFunctionMode):
    """Rounds what goes into every product, as tensor cores do: 10 bits are TF32, 7 are bf16."""

    def __init__(self, bits):
        super().__init__()
        self.bits = bits

    def __torch_function__(self, func, types, args=(), kwargs=None):
        # Outer products, as those of positions and frequencies, do not reach tensor cores.
        outer = len(args) > 1 and torch.is_tensor(args[0]) and args[0].shape[-1:] == (1,)
        if func in PRODUCTS and not outer:
            # What is added, as a bias, is not rounded.
            args = [rounded(value, self.bits) if torch.is_tensor(value) and value.ndim > 1 else
                    value for value in args]
        return func(*args, **(kwargs or {}))


def with_spread_weights(model):
    """Initial weights hide biases, norms and scales: zeros and ones become numbers."""
    for _, weight in model.named_parameters():
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
    torch.manual_seed(5)
    with torch.no_grad():
        model(**inputs)
    for handle in handles:
        handle.remove()
    return entries, calls


def as_type(value, dtype):
    return value.to(dtype) if torch.is_tensor(value) and value.is_floating_point() else value


def run_in(model, inputs, dtype):
    """What the dump holds where the whole model computes in another type."""
    model = copy.deepcopy(model).to(dtype)
    entries = captured(model, {key: as_type(value, dtype) for key, value in inputs.items()})[0]
    return {k: v.float() if dtype == torch.float64 else v for k, v in entries.items()}


def run_coarse(model, inputs, bits):
    with CoarseProducts(bits):
        return captured(copy.deepcopy(model), inputs)[0]


def other_attention(model, inputs):
    """Another implementation of attention, where the architecture has one."""
    config = copy.deepcopy(model.config)
    now = getattr(config, "_attn_implementation", None)
    if now not in ("sdpa", "eager"):
        raise ValueError("one implementation of attention only")
    other = type(model)._from_config(config, attn_implementation={
        "sdpa": "eager", "eager": "sdpa"}[now])
    other.load_state_dict(model.state_dict())
    entries, calls = captured(other.eval(), inputs)
    last, value = captured(model, inputs)[1][-1]
    if not torch.allclose(dict(calls)[last], value, rtol=1e-3, atol=1e-3 * value.abs().max()):
        raise ValueError("its other attention computes something else")
    return entries


RUNS = {
    "in float64": lambda model, inputs: run_in(model, inputs, torch.float64),
    "in bfloat16": lambda model, inputs: run_in(model, inputs, torch.bfloat16),
    "with products in TF32": lambda model, inputs: run_coarse(model, inputs, 10),
    "with products in bfloat16": lambda model, inputs: run_coarse(model, inputs, 7),
    "with other attention": other_attention,
}


def changed_output(module, change):
    module.register_forward_hook(lambda m, a, out: change(out) if torch.is_tensor(out) else None)


def with_coarse_product(m, rng):
    mode = CoarseProducts(rng.choice([7, 10]))
    m.register_forward_pre_hook(lambda m, args: mode.__enter__() and None)
    m.register_forward_hook(lambda m, args, out: mode.__exit__(None, None, None))


# What may go wrong with a module: what it does to it, and whether it can.
def lose_bias(m, rng): m.bias.data.zero_()
def transpose(m, rng): m.weight.data.copy_(m.weight.data.T.contiguous())
def turn_kernel(m, rng): m.weight.data.copy_(m.weight.data.transpose(2, 3).contiguous())
def lose_weight(m, rng): m.weight.data.fill_(1)
def other_eps(m, rng): m.eps = m.eps * 1e4 if m.eps < 1e-4 else 1e-2
def scaled(m, rng): factor = rng.choice([0.5, 1.1, 0.125]); changed_output(m, lambda y: y * factor)
def coarse(m, rng): changed_output(m, lambda y: y.to(torch.float8_e4m3fn).to(y.dtype))
def rolled(m, rng): changed_output(m, lambda y: y.roll(1, 1))
def empty_row(m, rng): changed_output(m, lambda y: torch.cat([y[:, :-1], 0 * y[:, -1:]], 1))
def in_training(m, rng): m.train()
def shifted_channels(m, rng): m.weight.data.copy_(m.weight.data.roll(1, 0))
def lose_columns(m, rng): m.weight.data[:, : max(1, m.in_features // 8)] = 0


def other_function(m, rng):
    """Another activation than its own, of those that ports confuse."""
    x = torch.linspace(-3, 3, 13)
    given = m(x)
    others = [f for f in (nn.GELU(), nn.GELU(approximate="tanh"), nn.SiLU(), nn.ReLU(), nn.Tanh())
              if not torch.allclose(f(x), given)]
    chosen = rng.choice(others)
    m.forward = lambda x, *args, **kwargs: chosen(x)


def other_scale(m, rng):
    name = "scaling" if has(m, "scaling") else "scale"
    setattr(m, name, getattr(m, name) * rng.choice([0.5, 2.0]))


def other_base(m, rng):
    turns = torch.arange(len(m.inv_freq), dtype=torch.float32) / len(m.inv_freq)
    m.inv_freq = rng.choice([1e3, 1e5, 5e5]) ** -turns


def is_scaled(m):
    """Attention that keeps the scale of its scores as a number."""
    return "Attention" in type(m).__name__ and any(
        isinstance(getattr(m, n, None), float) for n in ("scaling", "scale"))


def has(m, name):
    return getattr(m, name, None) is not None


ACTIVATIONS = {"GELU", "GELUActivation", "NewGELUActivation", "PytorchGELUTanh", "SiLU", "ReLU",
               "SiLUActivation", "QuickGELUActivation", "FastGELUActivation"}

MISTAKES = {
    "bias": (lose_bias, lambda m: has(m, "bias") and torch.is_tensor(m.bias)),
    "transposed": (transpose, lambda m: isinstance(m, nn.Linear) and
                   m.in_features == m.out_features),
    "kernel": (turn_kernel, lambda m: isinstance(m, nn.Conv2d) and m.kernel_size[0] > 1 and
               m.kernel_size[0] == m.kernel_size[1]),
    "norm_weight": (lose_weight, lambda m: "Norm" in type(m).__name__ and has(m, "weight")),
    "norm_eps": (other_eps, lambda m: "Norm" in type(m).__name__ and has(m, "eps")),
    "scale": (scaled, lambda m: True), "cast": (coarse, lambda m: True),
    "rolled": (rolled, lambda m: True), "empty": (empty_row, lambda m: True),
    "dropout": (in_training, lambda m: isinstance(m, nn.Dropout) and m.p > 0),
    "batch_stats": (in_training, lambda m: isinstance(m, nn.BatchNorm2d)),
    "coarse_product": (with_coarse_product, lambda m: isinstance(m, (nn.Linear, nn.Conv2d))),
    "columns": (lose_columns, lambda m: isinstance(m, nn.Linear) and m.in_features >= 16),
    "function": (other_function, lambda m: type(m).__name__ in ACTIVATIONS),
    "attention_scale": (other_scale, is_scaled),
    "rope_base": (other_base, lambda m: has(m, "inv_freq")),
    "rows": (shifted_channels, lambda m: has(m, "weight") and torch.is_tensor(m.weight) and
             m.weight.ndim > 1),
}
# Not every operator has every type, nor every model another attention.
UNFIT = (ValueError, RuntimeError, AttributeError, NotImplementedError, KeyError)
LARGE = 0.1  # Relative: a mistake of that size shows in any run.


def last_calls(calls):
    """What the dump holds, in the order in which it was computed."""
    last = {name: i for i, (name, _) in enumerate(calls)}
    return [call for i, call in enumerate(calls) if last[call[0]] == i]


def first_change(before, after):
    """The names under which the first difference shows, and how large it is."""
    before, after = last_calls(before), last_calls(after)
    for (name, x), (_, y) in zip(before, after):
        if x.shape != y.shape:
            return {name}, 1
        if not torch.equal(x, y):
            same = {other for other, z in after if z.shape == y.shape and torch.equal(z, y)}
            return {name} | same, float((x - y).norm() / x.norm())
    return set(), 0


def own_entries(at, before, after):
    """The entries of a module that changed, where it is called more than once."""
    names = [name for name, _ in before]
    before, after = dict(before), dict(after)
    return {name for name, x in before.items()
            if (name == at or name.startswith(at + ".")) and names.count(name) > 1 and
            name in after and not (x.shape == after[name].shape and torch.equal(x, after[name]))}


def plant(model, inputs, rng):
    """A copy of the model with one mistake, what it is, where it shows first and how large.

    A module that is called several times has one entry, which is placed at its last call. Where
    that entry is wrong, the module that holds the mistake is as right an answer.
    """
    leaves = [(n, m) for n, m in model.named_modules()
              if n and (not list(m.children()) or is_scaled(m))]
    before = captured(model, inputs)[1]
    for _ in range(50):
        kind = rng.choice(sorted(MISTAKES))
        made, fits = MISTAKES[kind]
        fitting = [n for n, m in leaves if fits(m)]
        if not fitting:
            continue
        at, wrong = rng.choice(fitting), copy.deepcopy(model)
        made(wrong.get_submodule(at), rng)
        after = captured(wrong, inputs)[1]
        where, size = first_change(before, after)
        if where and size > 1e-5:
            where |= own_entries(at, before, after)
            return wrong, kind, at, where, size
    raise ValueError("no mistake shows")


def keep(folder, a, b, truth):
    folder.mkdir(parents=True, exist_ok=True)
    for name, entries in (("a.pt", a), ("b.pt", b)):
        torch.save({k: v.contiguous() for k, v in entries.items()}, folder / name)
    (folder / "truth.json").write_text(json.dumps(truth))
    return folder


def make(family, seed, cases, folder, steps=0):
    """Clean pairs of all kinds and so many with a mistake; the folders that they are in."""
    torch.manual_seed(seed)
    rng = random.Random(f"{seed} {folder.name}")  # Each family has mistakes of its own.
    model, inputs = family(rng)
    if steps:  # What training leaves at zero or one is as people have it.
        model = training.trained(model, inputs, steps)
        inputs = training.fresh(inputs)
    else:
        model = with_spread_weights(model)
    a = captured(model, inputs)[0]
    folder.mkdir(parents=True, exist_ok=True)
    torch.save({k: v.contiguous() for k, v in model.state_dict().items()},
               folder / "weights.pt")
    folders = []
    for number, (what, run) in enumerate(RUNS.items()):
        try:
            b = run(model, inputs)
        except UNFIT:
            continue
        folders.append(keep(folder / f"clean_{number}", a, b, {"what": what, "where": []}))
    for number in range(cases):
        wrong, kind, at, where, size = plant(model, inputs, rng)
        kinds = list(RUNS)[:3] if size > LARGE else list(RUNS)[:1]
        how = rng.choice([kinds[0], *kinds])
        try:
            b = RUNS[how](wrong, inputs)
        except UNFIT:
            how, b = "in float32", captured(wrong, inputs)[0]
        truth = {"what": f"{kind} at {at}, {how}", "kind": kind, "where": sorted(where)}
        folders.append(keep(folder / f"wrong_{number:02}", a, b, truth))
    return folders
