"""isolate(): each mistake at its own place, nothing carried, nothing silently left out."""

from __future__ import annotations

import copy
import functools
import types
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import tensordiff  # noqa: E402


class Attention(torch.nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.q, self.k, self.v, self.o = (torch.nn.Linear(width, width) for _ in range(4))
        self.scale = width ** -0.5

    def forward(self, x: Any, mask: Any = None) -> Any:
        scores = self.q(x) @ self.k(x).transpose(-1, -2) * self.scale
        if mask is not None:
            scores = scores + mask
        return self.o(scores.softmax(-1) @ self.v(x))


class Layer(torch.nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = torch.nn.LayerNorm(width), torch.nn.LayerNorm(width)
        self.attn = Attention(width)
        self.up, self.down = torch.nn.Linear(width, width), torch.nn.Linear(width, width)
        self.act = torch.nn.GELU()

    def forward(self, x: Any, mask: Any = None) -> Any:
        x = x + self.attn(self.norm1(x), mask=mask)
        return x + self.down(self.act(self.up(self.norm2(x))))


class Model(torch.nn.Module):
    def __init__(self, layers: int = 3, width: int = 16) -> None:
        super().__init__()
        self.embed = torch.nn.Embedding(32, width)
        self.layers = torch.nn.ModuleList(Layer(width) for _ in range(layers))
        self.head = torch.nn.Linear(width, 32, bias=False)

    def forward(self, ids: Any) -> Any:
        x = self.embed(ids)
        mask = torch.full((ids.shape[1],) * 2, float("-inf"), dtype=x.dtype).triu(1)
        for layer in self.layers:
            x = layer(x, mask)
        return {"logits": self.head(x)}


@pytest.fixture
def pair() -> Any:
    torch.manual_seed(0)
    a = Model().eval()
    return a, copy.deepcopy(a), torch.randint(0, 32, (2, 6))


def paths(answer: Any) -> list[str]:
    return [finding.path for finding in answer.findings]


def test_a_right_port_is_the_same(pair: Any) -> None:
    a, b, ids = pair
    answer = tensordiff.isolate(a, b, ids)
    assert answer.verdict == "same" and answer.checked == 1 + 1 + 3 * 11 + 1
    assert all("forward" not in vars(module) for module in b.modules())


def test_a_wrong_leaf(pair: Any) -> None:
    a, b, ids = pair
    b.layers[1].act = torch.nn.GELU(approximate="tanh")
    answer = tensordiff.isolate(a, b, ids)
    assert paths(answer) == ["layers.1.act"]
    assert answer.findings[0].kind == "module" and answer.verdict == "different"


def test_own_code_and_where(pair: Any) -> None:
    a, b, ids = pair
    b.layers[1].attn.scale = 1.0
    answer = tensordiff.isolate(a, b, ids)
    assert paths(answer) == ["layers.1.attn"]
    assert answer.findings[0].kind == "own code"
    assert answer.findings[0].where == "between v and o (argument `input` of layers.1.attn.o)"


def test_a_line_to_look_at(pair: Any) -> None:
    a, b, ids = pair
    b.layers[1].attn.scale = 1.0
    answer = tensordiff.isolate(a, b, ids)
    line = Attention.forward.__code__.co_firstlineno + 1  # Where the scores are scaled.
    assert f"test_isolate.py:{line}, in forward: mul" in str(answer.findings[0].hint)
    b = copy.deepcopy(a)

    def forward(self: Any, x: Any, mask: Any = None) -> Any:
        x = x + self.attn(self.norm1(x), mask=mask)
        return self.down(self.act(self.up(self.norm2(x))))

    b.layers[0].forward = types.MethodType(forward, b.layers[0])
    found = tensordiff.isolate(a, b, ids).findings[0].hint
    assert found is not None and found.startswith("missing in B, in A at") and "add" in found
    assert tensordiff.isolate(a, b, ids, hints=False).findings[0].hint is None


def test_nested_mistakes_and_one_behind_another(pair: Any) -> None:
    a, b, ids = pair
    b.layers[0].attn.scale = 1.0
    with torch.no_grad():
        b.layers[0].attn.k.weight[3] *= 2
        b.layers[2].down.weight[0] += 1

    def forward(self: Any, x: Any, mask: Any = None) -> Any:
        x = self.attn(self.norm1(x), mask=mask)  # The residual is forgotten.
        return x + self.down(self.act(self.up(self.norm2(x))))

    b.layers[0].forward = types.MethodType(forward, b.layers[0])
    answer = tensordiff.isolate(a, b, ids)
    assert sorted(paths(answer)) == ["layers.0", "layers.0.attn", "layers.0.attn.k",
                                     "layers.2.down"]
    weights = {finding.path: finding.weights for finding in answer.findings if finding.weights}
    assert weights == {"layers.0.attn.k": ["weight in row 3 of 16"],
                       "layers.2.down": ["weight in row 0 of 16"]}


def test_a_wrong_mask_is_one_mistake_of_its_maker(pair: Any) -> None:
    a, b, ids = pair

    def forward(self: Any, ids: Any) -> Any:
        x = self.embed(ids)
        mask = torch.full((ids.shape[1],) * 2, float("-inf")).triu(2)
        for layer in self.layers:
            x = layer(x, mask)
        return {"logits": self.head(x)}

    b.forward = types.MethodType(forward, b)
    assert paths(tensordiff.isolate(a, b, ids)) == [""]


def test_a_missing_mask_is_a_mistake_of_the_caller_only_if_it_matters(pair: Any) -> None:
    a, b, ids = pair

    def forward(self: Any, ids: Any) -> Any:
        x = self.embed(ids)
        for layer in self.layers:
            x = layer(x, None)
        return {"logits": self.head(x)}

    b.forward = types.MethodType(forward, b)
    answer = tensordiff.isolate(a, b, ids)
    assert paths(answer) == [""]
    assert "`mask` of layers.0 is a tensor in A and None in B" in answer.findings[0].where
    for layer in b.layers:  # B masks by itself: then None is right.
        layer.attn.forward = types.MethodType(_causal, layer.attn)
    assert tensordiff.isolate(a, b, ids).verdict == "same"


def _causal(self: Any, x: Any, mask: Any = None) -> Any:
    scores = self.q(x) @ self.k(x).transpose(-1, -2) * self.scale
    mask = torch.full(scores.shape[-2:], float("-inf")).triu(1)
    return self.o((scores + mask).softmax(-1) @ self.v(x))


def test_a_module_that_raises_does_not_end_the_run(pair: Any) -> None:
    a, b, ids = pair
    b.layers[0].up = torch.nn.Linear(9, 9)
    b.layers[2].act = torch.nn.ReLU()
    answer = tensordiff.isolate(a, b, ids)
    assert paths(answer) == ["layers.0.up", "layers.2.act"]
    assert "raises RuntimeError" in answer.findings[0].where


def test_a_layer_that_is_not_called(pair: Any) -> None:
    a, b, ids = pair

    def forward(self: Any, x: Any, mask: Any = None) -> Any:
        x = x + self.attn(self.norm1(x), mask=mask)
        return x + self.down(self.act(self.up(x)))

    b.layers[1].forward = types.MethodType(forward, b.layers[1])
    assert paths(tensordiff.isolate(a, b, ids)) == ["layers.1"]


def test_weights_that_the_inputs_do_not_reach(pair: Any) -> None:
    a, b, ids = pair
    row = next(n for n in range(32) if n not in ids)
    with torch.no_grad():
        b.embed.weight[row] = 0
    answer = tensordiff.isolate(a, b, ids)
    assert paths(answer) == ["embed"] and answer.findings[0].kind == "weights"
    b.head.weight = b.embed.weight
    a.head.weight = a.embed.weight
    answer = tensordiff.isolate(a, b, ids)
    assert len(answer.findings) == 1
    assert {answer.findings[0].path, *answer.findings[0].also} == {"embed", "head"}


def test_bf16_and_compute(pair: Any) -> None:
    a, b, ids = pair
    b = b.to(torch.bfloat16)
    assert tensordiff.isolate(a, b, ids).verdict == "same"
    b.layers[1].attn.scale *= 1.002
    assert tensordiff.isolate(a, b, ids).verdict == "same"  # Below rounding.
    before = b.head.weight
    answer = tensordiff.isolate(a, b, ids, compute=torch.float32)
    assert paths(answer) == ["layers.1.attn"]
    assert b.head.weight is before and before.dtype == torch.bfloat16


def test_inputs_and_weights_are_left_as_they_were(pair: Any) -> None:
    a, b, ids = pair

    class Writes(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return x.mul_(3)

    x = torch.ones(4)
    answer = tensordiff.isolate(Writes(), torch.nn.Identity(), x)
    assert torch.equal(x, torch.ones(4)) and paths(answer) == [""]


def test_a_module_that_a_lacks_is_seen_at_the_next_door_or_listed(pair: Any) -> None:
    a, b, ids = pair

    class Extra(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return x * 1

    class Side(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.base, self.extra, self.lost = Model().eval(), Extra(), Extra()

        def forward(self, ids: Any) -> Any:
            self.probe = self.lost(ids * 1.0)
            return {"logits": self.extra(self.base(ids)["logits"])}

    b = Side()
    b.base = a
    answer = tensordiff.isolate(a, b, ids, mapping={f"base.{path}": path for path, _ in
                                                    a.named_modules() if path})
    assert [each.path for each in answer.not_checked] == ["lost"]
    assert answer.verdict == "unknown"
    with pytest.raises(ValueError, match="B has no module 'nosuch'"):
        tensordiff.isolate(a, b, ids, mapping={"nosuch": "head"})


def test_a_decorator_that_adds_keywords() -> None:
    """As transformers 5 does: the wrapper of forward() passes keywords that the caller did not."""
    def with_defaults(forward: Any) -> Any:
        @functools.wraps(forward)
        def wrapped(self: Any, *args: Any, **kwargs: Any) -> Any:
            return forward(self, *args, **{"cached": False, **kwargs})
        return wrapped

    class Inner(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = torch.nn.Linear(4, 4)

        @with_defaults
        def forward(self, x: Any = None, cached: bool = True, *, bias: Any = None,
                    **more: Any) -> Any:
            return self.linear(x) + bias + more["extra"]

    class Outer(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = Inner()

        def forward(self, x: Any) -> Any:
            return self.inner(x=x, bias=x * 2, extra=x * 3) + self.inner(x, bias=x, extra=x)

    torch.manual_seed(0)
    a = Outer()
    b = copy.deepcopy(a)
    assert tensordiff.isolate(a, b, torch.randn(2, 4)).verdict == "same"
    b.inner.linear = torch.nn.Linear(4, 4)
    assert [each.path for each in tensordiff.isolate(a, b, torch.randn(2, 4)).findings] == [
        "inner.linear"]


class Router(torch.nn.Module):
    """Chooses two of four experts, as those of transformers 5 do."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(4, 16))
        self.turned = False

    def forward(self, x: Any) -> Any:
        scores = (x @ self.weight.T).softmax(-1)
        values, chosen = scores.topk(2)
        return scores, values, 3 - chosen if self.turned else chosen


class Routed(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.router = Router()
        self.experts = torch.nn.Parameter(torch.randn(4, 16))

    def forward(self, x: Any) -> Any:
        _, values, chosen = self.router(x)
        return x + (self.experts[chosen] * values[..., None]).sum(-2)


def test_a_choice_near_a_tie_is_chance_and_another_one_is_not() -> None:
    torch.manual_seed(3)
    model = Routed()
    # Two experts with the same scores but for rounding: bf16 turns their order round somewhere.
    model.router.weight.data[1] = model.router.weight.data[0] * (1 + 1e-4)
    x = torch.randn(64, 16)
    port = copy.deepcopy(model).to(torch.bfloat16)
    chosen = model.router(x)[2]
    assert not torch.equal(chosen, port.router(x.to(torch.bfloat16))[2])
    right = tensordiff.isolate(model, port, {"x": x}, inputs_b={"x": x.to(torch.bfloat16)})
    assert not right.findings, str(right)
    port.router.turned = True
    wrong = tensordiff.isolate(model, port, {"x": x}, inputs_b={"x": x.to(torch.bfloat16)})
    assert [finding.path for finding in wrong.findings] == ["router"], str(wrong)


class Convolution(torch.nn.Conv1d):
    """Is far off in bf16, as torch's own is on some processors (pytorch/pytorch#163347)."""

    def forward(self, input: Any) -> Any:
        out = super().forward(input)
        return out * 0.25 if out.dtype == torch.bfloat16 else out


def test_a_kernel_that_is_wrong_for_a_too_is_no_mistake_of_the_port() -> None:
    torch.manual_seed(0)
    model = torch.nn.Sequential(Convolution(4, 4, 3), torch.nn.ReLU(), torch.nn.Conv1d(4, 4, 1))
    port, x = copy.deepcopy(model).to(torch.bfloat16), torch.randn(2, 4, 8)
    weights = [parameter.clone() for parameter in model.parameters()]
    answer = tensordiff.isolate(model, port, x, inputs_b=x.bfloat16())
    assert not answer.findings and answer.verdict == "unknown", str(answer)
    assert [str(each) for each in answer.not_checked] == [
        "not checked: 0 (A computed in bfloat16 is as far from A; use compute=torch.float32)"]
    assert all(map(torch.equal, weights, model.parameters()))
    assert tensordiff.isolate(model, port, x, compute=torch.float32).verdict == "same"
    port[2].weight.data *= 1.5
    answer = tensordiff.isolate(model, port, x, inputs_b=x.bfloat16())
    assert paths(answer) == ["2"] and [each.path for each in answer.not_checked] == ["0"]


def test_a_table_that_the_port_rounds_is_its_mistake() -> None:
    class Angles(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("step", torch.tensor([1.0, 0.3, 0.1, 0.03]))

        def forward(self, x: Any) -> Any:
            at = torch.arange(200.0)[:, None]
            return x * torch.cos(at * self.step.float()).to(x.dtype)

    model = torch.nn.Sequential(torch.nn.Linear(4, 4), Angles())
    port, x = copy.deepcopy(model).to(torch.bfloat16), torch.randn(200, 4)
    assert paths(tensordiff.isolate(model, port, x, inputs_b=x.bfloat16())) == ["1"]
