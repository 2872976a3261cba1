"""With models of transformers: generate(), other attention code, another module tree."""

from __future__ import annotations

import copy
import pathlib
import subprocess
import sys
import types
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from architectures import TUNED, build  # noqa: E402
from other_models import OTHER  # noqa: E402
from plain_models import PLAIN  # noqa: E402

import tensordiff  # noqa: E402
from tensordiff import trees  # noqa: E402


def generate(model: Any, inputs: Any) -> Any:
    return model.generate(**inputs, max_new_tokens=4, do_sample=False, pad_token_id=0)


def paths(answer: Any) -> list[str]:
    return [finding.path for finding in answer.findings]


def test_generate_is_isolated_step_by_step() -> None:
    a, inputs = build("llama", 0)
    b = copy.deepcopy(a)
    assert tensordiff.isolate(a, b, inputs, run=generate).verdict == "same"
    rotary = b.model.rotary_emb
    right = rotary.forward

    def forward(self: Any, x: Any, position_ids: Any) -> Any:
        if x.shape[1] == 1:  # Only decoding is wrong.
            position_ids = position_ids + 1
        return right(x, position_ids)

    rotary.forward = types.MethodType(forward, rotary)
    assert tensordiff.isolate(a, b, inputs).verdict == "same"
    answer = tensordiff.isolate(a, b, inputs, run=generate)
    assert paths(answer) == ["model.rotary_emb"] and answer.findings[0].calls == 4


def test_generate_is_captured_call_by_call(tmp_path: pathlib.Path) -> None:
    model, inputs = build("llama", 0)
    want = generate(model, inputs)
    with tensordiff.capture(model, tmp_path):
        got = generate(model, inputs)
    assert torch.equal(want, got)
    calls = [call for call in tensordiff.read_trace(tmp_path)["calls"]
             if call.get("path") == "model.layers.0.mlp"]
    assert [call["call"] for call in calls] == [0, 1, 2, 3]


def ids(tree: Any) -> set[int]:
    if isinstance(tree, list):
        return {number for each in tree for number in ids(each)}
    if not isinstance(tree, dict):
        return set()
    return ({tree["t"]} if "t" in tree else set()) | ids(tree.get("l", [])) | ids(
        list(tree.get("d", {}).values()))


@pytest.mark.parametrize("name", sorted(TUNED))
def test_every_argument_of_a_module_has_a_producer(name: str, tmp_path: pathlib.Path) -> None:
    model, inputs = build(name, 0)
    with torch.no_grad():
        want = model(**inputs)
        with tensordiff.capture(model, tmp_path):
            got = model(**inputs)
    for (_, a), (_, b) in zip(trees.tensors(want), trees.tensors(got)):
        assert torch.equal(a, b)
    trace = tensordiff.read_trace(tmp_path)
    made = {number for call in trace["calls"] for number in ids(call["out"])}
    given = ids(list(trace["calls"][0]["kwargs"].values()))  # The model's own inputs.
    used = {number for call in trace["calls"] if call["kind"] == "module"
            for number in ids(call["args"]) | ids(list(call["kwargs"].values()))}
    assert used - made - given == set()


def test_eager_attention_against_sdpa() -> None:
    a, inputs = build("llama", 0)
    config = copy.deepcopy(a.config)
    config._attn_implementation = "eager"
    b = type(a)(config).eval()
    b.load_state_dict(a.state_dict())
    answer = tensordiff.isolate(a, b, inputs)
    assert answer.verdict == "same", str(answer)
    b.model.layers[2].mlp.act_fn = torch.nn.GELU()
    assert paths(tensordiff.isolate(a, b, inputs)) == ["model.layers.2.mlp.act_fn"]


@pytest.mark.parametrize("name", sorted(PLAIN))
def test_another_module_tree(name: str) -> None:
    a, inputs = build(name, 1)
    b = PLAIN[name](a).eval()
    answer = tensordiff.isolate(a, b, inputs)
    assert answer.verdict == "same", str(answer)
    leaf = [path for path in answer.mapping if path.endswith(("w2", "back", "down", "fc2"))][1]
    with torch.no_grad():
        b.get_submodule(leaf).weight[1] *= 3
    assert paths(tensordiff.isolate(a, b, inputs)) == [leaf]


@pytest.mark.parametrize("name", sorted(OTHER))
def test_the_implementation_of_other_people(name: str) -> None:
    if name.endswith("_classes"):
        pytest.importorskip("timm")
    a, inputs = build(name, 1)
    b, given = OTHER[name](a).eval(), tuple(inputs.values())
    answer = tensordiff.isolate(a, b, inputs, inputs_b=given)
    assert answer.verdict == "same", str(answer)
    leaf = sorted(answer.mapping)[len(answer.mapping) // 2]
    with torch.no_grad():
        b.get_submodule(leaf).weight[1] *= 3
    assert paths(tensordiff.isolate(a, b, inputs, inputs_b=given)) == [leaf]


def test_the_example_names_its_three_mistakes() -> None:
    example = pathlib.Path(__file__).parents[2] / "examples" / "python" / "port.py"
    done = subprocess.run([sys.executable, str(example)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    right, wrong = done.stdout.split("With three mistakes:")
    assert "SAME: 0 mistakes" in right and "DIFFERENT: 3 mistakes" in wrong
    for place in ("blocks.1.attention: own code", "blocks.1.w2: the module itself",
                  "blocks.3.norm_b: the module itself"):
        assert place in wrong


def test_the_notebook_prints_what_it_has() -> None:
    for package in ("nbformat", "nbclient", "ipykernel"):
        pytest.importorskip(package)
    script = pathlib.Path(__file__).parents[2] / "examples" / "python" / "run_notebook.py"
    done = subprocess.run([sys.executable, str(script), "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_tables_that_all_layers_share() -> None:
    a, inputs = build("llama", 0)
    b = PLAIN["llama"](a).eval()
    b.frequencies = b.frequencies * 1.5
    answer = tensordiff.isolate(a, b, inputs)
    assert paths(answer) == [""]
    assert "hands to blocks.0.attention and 2 more" in answer.findings[0].where
