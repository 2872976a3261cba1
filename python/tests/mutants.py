"""Plants mistakes in models by machine, and counts how well isolate() locates them.

    python mutants.py 200 --seed 7 [--set held_out|tuned|trees|others] [--pairs N] [--nested N]
        [--clean SEEDS] [--verbose]

A mistake is a change of one statement in the code of one module, of one of its numbers, or of its
weights. Those that change the output by less than 1e-5 or break the run are thrown away and
counted. "Exact" is: the module is named, and no other.
"""

from __future__ import annotations

import argparse
import ast
import copy
import functools
import inspect
import random
import sys
import textwrap
import types
import warnings
from collections import Counter
from typing import Any

import torch
from architectures import HELD_OUT, TUNED, build
from other_models import OTHER
from plain_models import PLAIN

import tensordiff
from tensordiff import trees
from tensordiff._isolate import call_model

VISIBLE = 1e-5


class Unusable(Exception):
    """A mistake that cannot be planted here."""


# --- mistakes in code ---


def candidates(tree: ast.AST) -> list[tuple[str, ast.AST]]:
    found: list[tuple[str, ast.AST]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub, ast.Mult,
                                                                ast.Div)):
            found += [("operator", node), ("drop operand", node)]
        elif isinstance(node, ast.AugAssign):
            found += [("drop statement", node), ("operator", node)]
        elif isinstance(node, ast.Constant) and isinstance(node.value, (int, float)) \
                and not isinstance(node.value, bool):
            found.append(("number", node))
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) \
                and not isinstance(node.operand, ast.Constant):
            found.append(("sign", node))
        elif isinstance(node, ast.Assign) and isinstance(node.value, (ast.Call, ast.BinOp)):
            found.append(("factor", node))
        elif isinstance(node, ast.Compare):
            found.append(("comparison", node))
    return found


def change(kind: str, node: Any, chance: random.Random) -> None:
    if kind == "operator":
        other = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult}
        if type(node.op) not in other:
            raise Unusable
        node.op = other[type(node.op)]()
    elif kind == "drop operand":
        side = node.left if chance.random() < 0.5 else node.right
        node.left, node.op, node.right = side, ast.Mult(), ast.Constant(1)
    elif kind == "drop statement":
        node.op, node.value = ast.Add(), ast.Constant(0)
    elif kind == "number":
        node.value = chance.choice([node.value + 1, node.value * 2, node.value - 1])
    elif kind == "sign":
        node.op = ast.UAdd()
    elif kind == "factor":
        factor = chance.choice([0.5, 0.9, 1.01, 1.25, 2.0, -1.0])
        node.value = ast.BinOp(node.value, ast.Mult(), ast.Constant(factor))
    elif kind == "comparison":
        other = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt,
                 ast.Eq: ast.NotEq, ast.NotEq: ast.Eq}
        if type(node.ops[0]) not in other:
            raise Unusable
        node.ops[0] = other[type(node.ops[0])]()


def methods_of(module: torch.nn.Module) -> list[Any]:
    """Functions of its class that are not torch's, and helpers that they call."""
    found: list[Any] = []
    for base in type(module).__mro__:
        if base.__module__.startswith("torch.") or base.__name__.startswith("PreTrained"):
            break
        for name, value in vars(base).items():
            if isinstance(value, types.FunctionType) and not name.startswith("__"):
                found.append(value)
    return found


def mutate_code(module: torch.nn.Module, chance: random.Random) -> str:
    methods = methods_of(module)
    if not methods:
        raise Unusable
    forward = [m for m in methods if m.__name__ == "forward"]
    method = chance.choice(forward) if forward and chance.random() < 0.7 \
        else chance.choice(methods)
    helpers = [name for name in method.__code__.co_names
               if isinstance(method.__globals__.get(name), types.FunctionType)
               and method.__globals__[name].__module__ == method.__module__]
    target = method
    if helpers and chance.random() < 0.25:
        target = method.__globals__[chance.choice(helpers)]
    target = inspect.unwrap(target)
    tree = ast.parse(textwrap.dedent(inspect.getsource(target)))
    function = tree.body[0]
    if not isinstance(function, ast.FunctionDef):
        raise Unusable
    function.decorator_list = []
    function.returns = None
    body = ast.Module(function.body, [])
    choices = candidates(body)
    if not choices:
        raise Unusable
    kind, node = chance.choice(choices)
    line = target.__code__.co_firstlineno + getattr(node, "lineno", 1) - 1
    change(kind, node, chance)
    ast.fix_missing_locations(tree)
    space = dict(target.__globals__)
    exec(compile(tree, target.__code__.co_filename, "exec"), space)
    made = space[function.name]
    if target is not inspect.unwrap(method):
        space = dict(method.__globals__)
        space[function.name] = made
        inner = inspect.unwrap(method)
        made = types.FunctionType(inner.__code__, space, inner.__name__, inner.__defaults__,
                                  inner.__closure__)
        made.__kwdefaults__ = inner.__kwdefaults__
    setattr(module, method.__name__, types.MethodType(made, module))
    return f"{kind} in {method.__name__}, line {line}"


# --- mistakes in numbers and weights ---


def mutate_number(module: torch.nn.Module, chance: random.Random) -> str:
    names = [name for name, value in vars(module).items() if isinstance(value, float)]
    if not names:
        raise Unusable
    name = chance.choice(names)
    factor = chance.choice([0.5, 1.5, 2.0, 10.0])
    setattr(module, name, getattr(module, name) * factor)
    return f"{name} times {factor}"


def mutate_weights(module: torch.nn.Module, chance: random.Random) -> str:
    names = [name for name, _ in module.named_parameters(recurse=False)]
    if not names:
        raise Unusable
    name = chance.choice(names)
    weight = getattr(module, name).data
    if weight.dim() == 0 or weight.shape[0] < 2:
        raise Unusable
    row, other = chance.sample(range(weight.shape[0]), 2)
    kind = chance.choice(["scale a row", "zero a row", "swap rows", "all times 1.1", "transpose"])
    if kind == "scale a row":
        weight[row] *= 1.5
    elif kind == "zero a row":
        weight[row] = 0
    elif kind == "swap rows":
        weight[[row, other]] = weight[[other, row]]
    elif kind == "all times 1.1":
        weight *= 1.1
    elif weight.dim() == 2 and weight.shape[0] == weight.shape[1]:
        weight.copy_(weight.t().clone())
    else:
        raise Unusable
    return f"{name}: {kind}"


KINDS = {"code": (mutate_code, 6), "number": (mutate_number, 1), "weights": (mutate_weights, 3)}


def plant(kind: str, module: torch.nn.Module, chance: random.Random) -> str:
    try:
        return KINDS[kind][0](module, chance)
    except Unusable:
        raise
    except Exception as error:  # Source that cannot be changed this way.
        raise Unusable from error


def choose(model: torch.nn.Module, count: int, nested: bool,
           chance: random.Random) -> list[tuple[str, str]]:
    """(module, kind) for each mistake: the kind first, so that the many leaves do not crowd out
    the code."""
    made: list[tuple[str, str]] = []
    while len(made) < count:
        kind = chance.choices(list(KINDS), [weight for _, weight in KINDS.values()])[0]
        paths = [path for path, module in model.named_modules()
                 if (kind != "code" or methods_of(module))
                 and (kind != "weights" or any(True for _ in module.parameters(recurse=False)))
                 and all(path != other for other, _ in made)]
        if nested and made:
            child = made[0][0]
            paths = [path for path in paths if path == "" or child.startswith(path + ".")]
        if not paths:
            return []
        made.append((chance.choice(paths), kind))
    return made


# --- one trial ---


def moved(model: torch.nn.Module, inputs: Any, want: Any) -> float:
    """How far the outputs are from those of the model without a mistake."""
    with torch.no_grad():
        got = call_model(model, inputs)
    worst = 0.0
    pairs = list(zip(trees.tensors(want), trees.tensors(got)))
    for (_, a), (_, b) in pairs:
        if a.shape != b.shape:
            raise Unusable
        apart = float((b.double() - a.double()).norm() / a.double().norm().clamp_min(1e-30))
        if apart != apart or apart == float("inf"):
            raise Unusable
        worst = max(worst, apart)
    return worst


@functools.lru_cache(maxsize=None)
def reference_of(name: str, seed: int) -> Any:
    """A, a right port of it, the inputs of each, and what the port returns.

    "plain X" has another tree, and "other X" is the implementation of other people.
    """
    kind, _, plain = name.rpartition(" ")
    model, inputs = build(plain, seed)
    port = model
    if kind:
        port = {"plain": PLAIN, "other": OTHER}[kind][plain](model).eval()
    given = tuple(inputs.values()) if kind == "other" else inputs  # Its arguments have other names.
    with torch.no_grad():
        return model, port, inputs, given, call_model(port, given)


def trial(name: str, seed: int, count: int, nested: bool, thrown: Counter[str]) -> Any:
    """(truth, what was planted, the answer), or None where it was thrown away."""
    chance = random.Random(seed)
    reference, right, inputs, given, want = reference_of(name, seed % 7)
    chosen = choose(right, count, nested, chance)
    port = copy.deepcopy(right)
    done: list[str] = []
    for path, kind in chosen:
        state = chance.getstate()
        try:
            done.append(plant(kind, port.get_submodule(path), chance))
            if count > 1:
                chance.setstate(state)
                alone = copy.deepcopy(right)
                plant(kind, alone.get_submodule(path), chance)
            far = moved(port if count == 1 else alone, given, want)
        except Unusable:
            thrown["cannot be planted there"] += 1
            return None
        except Exception:
            thrown["breaks the run"] += 1
            return None
        if far < VISIBLE:
            thrown["changes the output by less than 1e-5"] += 1
            return None
    if not chosen:
        return None
    try:
        far = moved(port, given, want)
    except Exception:
        thrown["breaks the run"] += 1
        return None
    if far < VISIBLE:  # A factor 2 and a factor 1/2 make a right port.
        thrown["cancel each other"] += 1
        return None
    return chosen, done, tensordiff.isolate(reference, port, inputs, inputs_b=given,
                                            hints=False)


def score(title: str, wanted: int, seed: int, models: list[str], options: Any, count: int = 1,
          nested: bool = False) -> tuple[int, int, int]:
    thrown: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    tried = exact = found = false = 0
    number = 0
    while tried < wanted:
        number += 1
        name = models[number % len(models)]
        result = trial(name, seed * 1_000_003 + number, count, nested, thrown)
        if result is None:
            continue
        chosen, done, answer = result
        truth = [path for path, _ in chosen]
        tried += 1
        named = [{finding.path, *finding.also} for finding in answer.findings]
        all_found = all(any(path in names for names in named) for path in truth)
        wrong = sum(not names & set(truth) for names in named)
        exact += all_found and wrong == 0
        for _, kind in chosen:
            kinds[kind] += 1
        found += all_found
        false += wrong
        if options.verbose and not (all_found and wrong == 0):
            print(f"  {name} {truth} {done}\n    " + str(answer).replace("\n", "\n    "))
    print(f"{title}: {exact} of {tried} exact, {found} all found, {false} false findings; "
          f"planted {dict(kinds)}; thrown away {sum(thrown.values())}: {dict(thrown)}", flush=True)
    return tried, exact, found


def without_mistakes(models: list[str], seeds: list[int]) -> None:
    """Right ports: nothing may be flagged, in f32, in bf16, or of bf16 computed in f32."""
    for title, half, compute in (("f32", False, None), ("bf16", True, None),
                                 ("bf16, compute=float32", True, torch.float32)):
        flagged = unknown = count = 0
        for name in models:
            for seed in seeds:
                model, port, inputs, other, _ = reference_of(name, seed)
                port = copy.deepcopy(port)
                if half:
                    port = port.to(torch.bfloat16)
                    other = trees.replace(other, {
                        path: value.to(torch.bfloat16) for path, value in trees.tensors(other)
                        if value.is_floating_point()})
                answer = tensordiff.isolate(model, port, inputs, inputs_b=other, compute=compute)
                count += 1
                flagged += bool(answer.findings)
                unknown += answer.verdict == "unknown"
                if answer.findings:
                    print(f"  {name}, seed {seed}: {answer}")
        print(f"no mistake, {title}: {flagged} of {count} flagged, {unknown} unknown", flush=True)


def main() -> int:
    options = argparse.ArgumentParser()
    options.add_argument("count", type=int)
    options.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 30))
    options.add_argument("--set", choices=["held_out", "tuned", "trees", "others"],
                         default="held_out")
    options.add_argument("--pairs", type=int, default=None)
    options.add_argument("--nested", type=int, default=None)
    options.add_argument("--verbose", action="store_true")
    options.add_argument("--clean", type=int, default=0, metavar="SEEDS",
                         help="also right ports, with so many seeds each")
    chosen = options.parse_args()
    warnings.filterwarnings("ignore")
    import transformers
    transformers.logging.set_verbosity_error()
    models = {"held_out": list(HELD_OUT), "tuned": list(TUNED),
              "trees": [f"plain {name}" for name in PLAIN],
              "others": [f"other {name}" for name in OTHER]}[chosen.set]
    print(f"seed {chosen.seed}; torch {torch.__version__}; {len(models)} architectures: "
          + " ".join(models))
    pairs = chosen.count // 4 if chosen.pairs is None else chosen.pairs
    nested = chosen.count // 4 if chosen.nested is None else chosen.nested
    if chosen.clean:
        without_mistakes(models, list(range(chosen.seed, chosen.seed + chosen.clean)))
    score("singles", chosen.count, chosen.seed, models, chosen)
    score("pairs", pairs, chosen.seed + 1, models, chosen, 2)
    score("nested pairs", nested, chosen.seed + 2, models, chosen, 2, True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
