"""capture(), isolate() and invariance() of models on a CUDA device; part of gpu_check.py.

Each check returns figures and a list of what is wrong, and needs torch with CUDA. Models are
transformers' Llama where that is installed, and else a small one written here.
"""

from __future__ import annotations

import copy
import pathlib
import tempfile
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import nn

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
Found = tuple[dict[str, Any], list[str]]


class Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.act, self.down = nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width,
                                                                                        width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = (each.unflatten(-1, (4, -1)).transpose(1, 2)
                   for each in self.qkv(self.norm(x)).chunk(3, -1))
        mixed = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).flatten(2))
        return x + self.down(self.act(self.up(x)))


class Plain(nn.Module):
    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.embed, self.head = nn.Embedding(96, width), nn.Linear(width, 96)
        self.layers = nn.ModuleList(Block(width) for _ in range(3))

    def forward(self, input_ids: torch.Tensor) -> torch.Tensor:
        x = self.embed(input_ids)
        for layer in self.layers:
            x = layer(x)
        return self.head(x)


def llama() -> nn.Module | None:
    try:
        from transformers import LlamaConfig, LlamaForCausalLM
    except ImportError:
        return None
    torch.manual_seed(4)
    return LlamaForCausalLM(LlamaConfig(
        vocab_size=96, hidden_size=64, intermediate_size=96, num_hidden_layers=3,
        num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=64,
        pad_token_id=0, bos_token_id=1, eos_token_id=2)).to(DEVICE).eval()


def models() -> Iterator[tuple[str, nn.Module]]:
    torch.manual_seed(3)
    yield "plain", Plain().to(DEVICE).eval()
    found = llama()
    if found is not None:
        yield "llama", found


def inputs() -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(5)
    return {"input_ids": torch.randint(3, 96, (2, 9), generator=generator).to(DEVICE)}


def logits(out: Any) -> torch.Tensor:
    return out if isinstance(out, torch.Tensor) else out.logits


def captured(model: nn.Module, call: Callable[[], Any], **options: Any) -> tuple[Any, Any, Any]:
    """What the call returns under capture, the trace, and the tensors as files hold them."""
    import tensordiff
    from safetensors import safe_open
    with tempfile.TemporaryDirectory() as folder:
        with torch.no_grad(), tensordiff.capture(model, folder, **options):
            out = call()
        tensors = {}
        for path in sorted(pathlib.Path(folder).glob("*.safetensors")):
            with safe_open(path, "pt") as file:
                tensors.update({name: file.get_tensor(name) for name in file.keys()})
        return out, tensordiff.read_trace(folder), tensors


def hooked(model: nn.Module, call: Callable[[], Any]) -> dict[str, torch.Tensor]:
    """The first output of each module by plain hooks."""
    seen: dict[str, torch.Tensor] = {}

    def hook(name: str) -> Any:
        def keep(module: Any, given: Any, out: Any) -> None:
            if isinstance(out, torch.Tensor):
                seen.setdefault(name, out.detach().cpu().clone())
        return keep

    handles = [module.register_forward_hook(hook(name)) for name, module in model.named_modules()
               if name]
    with torch.no_grad():
        call()
    for handle in handles:
        handle.remove()
    return seen


def check_capture() -> Found:
    """Outputs bit for bit, files as plain hooks see the tensors; f32, bf16 and autocast."""
    figures: dict[str, Any] = {}
    wrong: list[str] = []
    for name, model in models():
        for kind in ("float32", "bfloat16", "autocast"):
            one = copy.deepcopy(model).bfloat16() if kind == "bfloat16" else model

            def call(one: nn.Module = one, kind: str = kind) -> Any:
                with torch.autocast(DEVICE, torch.bfloat16, enabled=kind == "autocast"):
                    return logits(one(**inputs()))

            with torch.no_grad():
                want = call()
            have, trace, tensors = captured(one, call)
            if not torch.equal(want, have):
                wrong.append(f"{name} {kind}: outputs differ under capture")
            seen = hooked(one, call)
            for path, tensor in tensors.items():
                if path in seen and (tensor.dtype != seen[path].dtype
                                     or not torch.equal(tensor, seen[path])):
                    wrong.append(f"{name} {kind}: {path} is not what a hook sees")
            same = sum(path in seen for path in tensors)
            if same < 10:
                wrong.append(f"{name} {kind}: only {same} tensors are known to hooks")
            linked = unlinked(trace)
            if len(linked) > 8:
                wrong.append(f"{name} {kind}: no producer for {linked[:9]}")
            dtypes = sorted({each["dtype"] for each in trace["tensors"]})
            figures[f"{name} {kind}"] = {"tensors": len(tensors), "calls": len(trace["calls"]),
                                         "dtypes": dtypes, "unlinked": len(linked)}
            if kind == "autocast" and "bfloat16" not in dtypes:
                wrong.append(f"{name} autocast: no bf16 tensor in the trace: {dtypes}")
    return figures, wrong


def unlinked(trace: Any) -> list[str]:
    """Tensor arguments of module calls that nothing recorded has made."""
    made: set[int] = set()
    lost: list[str] = []

    def numbers(tree: Any) -> Iterator[int]:
        if isinstance(tree, dict):
            if "t" in tree:
                yield tree["t"]
            for each in tree.values():
                yield from numbers(each)
        elif isinstance(tree, list):
            for each in tree:
                yield from numbers(each)

    for call in trace["calls"]:
        made.update(numbers(call.get("out")))
    for call in trace["calls"]:
        if call["kind"] == "module":
            for number in numbers([call["args"], call["kwargs"]]):
                if number not in made:
                    lost.append(call["path"])
    return lost


def check_gradients() -> Found:
    wrong: list[str] = []
    import tensordiff
    for name, model in models():
        found = []
        for under in (False, True):
            one = copy.deepcopy(model)
            with tempfile.TemporaryDirectory() as folder:
                if under:
                    with tensordiff.capture(one, folder):
                        logits(one(**inputs())).float().square().mean().backward()
                else:
                    logits(one(**inputs())).float().square().mean().backward()
            found.append({key: p.grad for key, p in one.named_parameters()})
        for key in found[0]:
            a, b = found[0][key], found[1][key]
            if (a is None) != (b is None) or a is not None and not torch.equal(a, b):
                wrong.append(f"{name}: gradient of {key} differs under capture")
    return {}, wrong


def check_generate() -> Found:
    model = llama()
    if model is None:
        return {"skipped": "transformers is not installed"}, []
    model.generation_config.eos_token_id = None

    def call() -> Any:
        return model.generate(**inputs(), max_new_tokens=4, do_sample=False)

    wrong = []
    with torch.no_grad():
        want = call()
    have, trace, tensors = captured(model, call)
    if not torch.equal(want, have):
        wrong.append("generate() makes other tokens under capture")
    steps = [call for call in trace["calls"] if call["kind"] == "module"
             and call["path"] == "model.layers.0.mlp"]
    if len(steps) != 4:
        wrong.append(f"generate() of 4 tokens shows {len(steps)} calls of a module")
    return {"tensors": len(tensors), "calls": len(trace["calls"])}, wrong


def check_compiled() -> Found:
    """A compiled model is captured as eager code, and is compiled again behind it."""
    wrong = []
    torch.manual_seed(3)
    model = Plain().to(DEVICE).eval()
    fast = torch.compile(model)
    with torch.no_grad():
        before = fast(**inputs())
        eager = model(**inputs())
    out, trace, tensors = captured(model, lambda: fast(**inputs()))
    if not torch.equal(out, eager):
        wrong.append("a compiled model under capture is not the eager one")
    paths = {call["path"] for call in trace["calls"] if call["kind"] == "module"}
    if "layers.2.down" not in paths:
        wrong.append(f"a compiled model shows only {sorted(paths)}")
    with torch.no_grad():
        if not torch.equal(fast(**inputs()), before):
            wrong.append("a compiled model gives another result behind a capture")
    return {"tensors": len(tensors)}, wrong


def check_cuda_graph() -> Found:
    """A replayed graph calls no module: the capture says that it saw nothing."""
    torch.manual_seed(3)
    model = Plain().to(DEVICE).eval()
    static = inputs()["input_ids"]
    with torch.no_grad():
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                model(static)
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            out = model(static)
    _, trace, tensors = captured(model, graph.replay)
    wrong = [] if not trace["calls"] and not tensors else ["a replayed graph shows calls"]
    if not bool(torch.isfinite(out).all()):
        wrong.append("a graph's output is not finite")
    return {"calls": len(trace["calls"]), "complete": trace["complete"]}, wrong


class Scaled(nn.Module):
    """A module whose output is a little larger."""

    def __init__(self, inner: nn.Module, factor: float) -> None:
        super().__init__()
        self.__dict__["inner"] = inner
        self.factor = factor
        self.weight = inner.weight

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.inner(x) * self.factor


def check_isolate() -> Found:
    """Right ports are silent; two planted mistakes are found and nothing else."""
    import tensordiff
    figures: dict[str, Any] = {}
    wrong: list[str] = []

    def autocast(model: nn.Module, given: Any) -> Any:
        with torch.autocast(DEVICE, torch.bfloat16):
            return model(**given)

    for name, model in models():
        places = ("layers.0.down", "layers.1.act") if name == "plain" else (
            "model.layers.0.mlp.down_proj", "model.layers.1.mlp.act_fn")
        half = copy.deepcopy(model).bfloat16()
        bad = copy.deepcopy(model)
        bad.set_submodule(places[0], Scaled(bad.get_submodule(places[0]), 1.1))
        bad.set_submodule(places[1], nn.ReLU())
        for title, b, options in (
                ("itself", copy.deepcopy(model), {}), ("bf16", half, {}),
                ("bf16 in f32", half, {"compute": torch.float32}),
                ("autocast", copy.deepcopy(model), {"run": autocast}),
                ("A on the host", copy.deepcopy(model), {"host": True})):
            host = options.pop("host", False)
            a = copy.deepcopy(model).cpu() if host else model
            given = {key: value.cpu() for key, value in inputs().items()} if host else inputs()
            answer = tensordiff.isolate(a, b, given, inputs_b=inputs(), **options)
            figures[f"{name} {title}"] = answer.verdict
            if answer.findings:
                wrong.append(f"{name} {title}: {answer}")
        for title, options in (("mistakes", {}), ("mistakes, autocast", {"run": autocast})):
            answer = tensordiff.isolate(model, bad, inputs(), **options)
            found = sorted(each.path for each in answer.findings)
            figures[f"{name} {title}"] = [str(each) for each in answer.findings]
            if found != sorted(places):
                wrong.append(f"{name} {title}: found {found}, wanted {sorted(places)}")
    return figures, wrong


def check_invariance() -> Found:
    import tensordiff
    figures = {}
    for name, model in models():
        for kind in ("float32", "bfloat16"):
            one = copy.deepcopy(model).to(getattr(torch, kind))
            figures[f"{name} {kind}"] = str(tensordiff.invariance(one, inputs(), runs=2))
    return figures, []


CHECKS: list[tuple[str, Callable[[], Found]]] = [
    ("capture", check_capture), ("gradients", check_gradients), ("generate", check_generate),
    ("compiled", check_compiled), ("CUDA graph", check_cuda_graph), ("isolate", check_isolate),
    ("invariance", check_invariance)]
