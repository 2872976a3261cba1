"""isolate() on another module tree: what A lacks, other layouts, what is called otherwise."""

from __future__ import annotations

import copy
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import tensordiff  # noqa: E402


def paths(answer: Any) -> list[str]:
    return [finding.path for finding in answer.findings]


class Parts(torch.nn.Module):
    """A as two products with an activation and a residual; B builds it of other modules."""

    def __init__(self, names: tuple[str, str], inner: Any) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.names = names
        for name in names:
            setattr(self, name, torch.nn.Linear(8, 8))
        self.inner = inner
        self.drop = torch.nn.Dropout(0.5)
        self.factor = 1.0

    def forward(self, x: Any) -> Any:
        first, second = (getattr(self, name) for name in self.names)
        y = self.inner(first(x) * self.factor)
        return x + second(self.drop(y))


class Within(torch.nn.Module):
    def __init__(self, inner: Any) -> None:
        super().__init__()
        self.one = torch.nn.Sequential(torch.nn.Identity(), inner)

    def forward(self, x: Any) -> Any:
        return self.one(x).reshape(-1, 8).reshape(x.shape)


def test_what_hands_on_has_nothing_to_check() -> None:
    a, b = Parts(("up", "down"), torch.nn.GELU()).eval(), Parts(
        ("fc1", "fc2"), torch.nn.Sequential(torch.nn.Identity(), torch.nn.GELU())).eval()
    x = torch.randn(4, 8)
    answer = tensordiff.isolate(a, b, x)
    assert answer.verdict == "same" and not answer.not_checked, str(answer)


def test_a_mistake_before_an_activation_is_not_that_of_the_activation() -> None:
    a, b = Parts(("up", "down"), torch.nn.GELU()).eval(), Parts(
        ("fc1", "fc2"), Within(torch.nn.GELU())).eval()
    x = torch.randn(4, 8)
    assert tensordiff.isolate(a, b, x).verdict == "same"
    b.factor = 1.5
    assert paths(tensordiff.isolate(a, b, x)) == [""]
    b.factor = 1.0
    b.inner.one[1] = torch.nn.GELU(approximate="tanh")
    assert paths(tensordiff.isolate(a, b, x)) == ["inner.one.1"]


def test_an_activation_at_another_place_is_no_mistake() -> None:
    class Scaled(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return x * 2

    a = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), Scaled(),
                            torch.nn.Linear(8, 8))
    b = torch.nn.Sequential()
    for name, module in (("a", a[0]), ("b", a[2]), ("c", a[1]), ("d", a[3])):
        b.add_module(name, module)
    answer = tensordiff.isolate(a, b, torch.randn(4, 8))
    assert answer.verdict == "same", str(answer)


def test_a_view_of_a_wrong_tensor_is_not_wrong_and_a_wrong_view_is() -> None:
    class Flat(torch.nn.Module):
        def __init__(self, inner: Any, turn: bool = False) -> None:
            super().__init__()
            self.first, self.flat, self.last = (
                torch.nn.Linear(8, 8), torch.nn.Flatten(), torch.nn.Linear(32, 4))
            self.inner, self.turn, self.factor = inner, turn, 1.0

        def forward(self, x: Any) -> Any:
            y = self.first(x) * self.factor
            return self.last(self.inner(y) if self.inner else y.flatten(1))

    class Reversed(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return x.transpose(1, 2).flatten(1)

    a = Flat(None)
    right, wrong = copy.deepcopy(a), copy.deepcopy(a)
    right.inner, right.factor = torch.nn.Flatten(), 0.5
    wrong.inner = Reversed()
    x = torch.randn(3, 4, 8)
    assert paths(tensordiff.isolate(a, right, x)) == [""]
    assert paths(tensordiff.isolate(a, wrong, x)) == ["inner"]


def test_rows_that_are_exchanged_do_not_hide_their_module() -> None:
    a = torch.nn.Sequential(torch.nn.Embedding(2, 8), torch.nn.LayerNorm(8))
    b = torch.nn.Sequential()
    for name, module in zip(("kind", "norm"), copy.deepcopy(a)):
        b.add_module(name, module)
    with torch.no_grad():
        b.kind.weight.copy_(a[0].weight.flip(0))
    assert paths(tensordiff.isolate(a, b, torch.tensor([[0, 1, 1]]))) == ["kind"]


class Turned(torch.nn.Module):
    """Attention whose q and k have their columns in some order; it does not matter which."""

    def __init__(self, names: str) -> None:
        super().__init__()
        for name in names:
            setattr(self, name, torch.nn.Linear(8, 8, bias=False))
        self.names = names
        self.order = torch.arange(8)

    def forward(self, x: Any) -> Any:
        q, k, v, o = (getattr(self, name) for name in self.names)
        weights = torch.arange(8.0)[self.order] + 1
        return o((q(x) * weights @ k(x).transpose(-1, -2)).softmax(-1) @ v(x))


def test_an_order_of_rows_is_a_layout_if_its_readers_agree() -> None:
    torch.manual_seed(0)
    a = torch.nn.Sequential(*(Turned("qkvo") for _ in range(3)))
    b = torch.nn.Sequential()
    order = torch.tensor([0, 4, 1, 5, 2, 6, 3, 7])
    for at, theirs in enumerate(a):
        mine = Turned("xyzw")
        for name, other in zip("xyzw", "qkvo"):
            weight = getattr(theirs, other).weight.detach()
            getattr(mine, name).weight = torch.nn.Parameter(
                weight[order] if name in "xy" else weight.clone())
        b.add_module(f"layer{at}", mine)
    x = torch.randn(2, 5, 8)
    wrong = tensordiff.isolate(a, b, x)  # A converter's mistake: who reads them takes A's order.
    assert sorted(paths(wrong)) == [f"layer{at}.{name}" for at in range(3) for name in "xy"]
    for layer in b:
        layer.order = order
    right = tensordiff.isolate(a, b, x)
    assert right.verdict == "same" and "another order" in right.notes[0], str(right)
    with torch.no_grad():
        b.layer1.y.weight[3] *= 3
    answer = tensordiff.isolate(a, b, x)
    assert paths(answer) == ["layer1.y"] and answer.findings[0].weights == ["weight in row 3 of 8"]


def test_weights_that_are_used_without_their_module() -> None:
    class Plain(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner, self.out = torch.nn.Linear(8, 24), torch.nn.Linear(8, 8)
            self.norm = torch.nn.LayerNorm(8)

        def forward(self, x: Any) -> Any:
            q, k, v = self.inner(x).chunk(3, -1)
            y = (q @ k.transpose(-1, -2) / 8 ** 0.5).softmax(-1) @ v
            return self.norm(x + self.out(y))

    class Built(torch.nn.Module):
        def __init__(self, theirs: Plain) -> None:
            super().__init__()
            self.attn = torch.nn.MultiheadAttention(8, 1, batch_first=True)
            self.attn.in_proj_weight = torch.nn.Parameter(theirs.inner.weight.detach().clone())
            self.attn.in_proj_bias = torch.nn.Parameter(theirs.inner.bias.detach().clone())
            self.attn.out_proj.load_state_dict(theirs.out.state_dict())
            self.last = copy.deepcopy(theirs.norm)

        def forward(self, x: Any) -> Any:
            return self.last(x + self.attn(x, x, x, need_weights=False)[0])

    torch.manual_seed(0)
    a, x = Plain().eval(), torch.randn(2, 5, 8)
    b = Built(a).eval()
    assert tensordiff.isolate(a, b, x).verdict == "same"
    with torch.no_grad():
        b.attn.out_proj.weight[2] *= 4
    assert paths(tensordiff.isolate(a, b, x)) == ["attn.out_proj"]


def test_inputs_of_b_that_are_called_otherwise_and_rounded() -> None:
    class Named(torch.nn.Module):
        def __init__(self, inner: Any) -> None:
            super().__init__()
            self.inner = inner

        def forward(self, pixels: Any) -> Any:
            return self.inner(pixels)

    torch.manual_seed(0)
    a = Named(torch.nn.Linear(8, 8))
    b = torch.nn.Sequential(copy.deepcopy(a.inner)).to(torch.bfloat16)
    x = torch.randn(4, 8)
    answer = tensordiff.isolate(a, b, {"pixels": x}, inputs_b=(x.bfloat16(),),
                                compute=torch.float32)
    assert answer.verdict == "same", str(answer)
