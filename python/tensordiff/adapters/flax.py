"""Every intermediate result of a flax.linen module as a capture.

    from tensordiff.adapters.flax import capture_flax
    output = capture_flax(model, variables, x, folder="port")

Compare the folder with that of tensordiff.capture() of the PyTorch model: tensordiff ref port.
Needs flax. Results that are computed between modules are not seen: flax shows what modules return.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any

import numpy

from ..untyped import is_mapping, package
from .graph_trace import Call, write_capture


def capture_flax(model: Any, variables: Any, *args: Any, folder: str | os.PathLike[str],
                 **kwargs: Any) -> Any:
    """Applies the module with capture_intermediates and writes what its modules return.

    Returns the output of the model. Names are paths with dots, "encoder.layers_0"; `@k` is the
    k-th call after the first, `.i` one of several results, as in captures of PyTorch models.
    """
    flax, jax = package("flax"), package("jax")
    output, state = model.apply(variables, *args, capture_intermediates=True,
                                mutable=["intermediates"], **kwargs)
    values: dict[str, Any] = {}
    written: dict[int, str] = {}  # What several modules return is written once, under the first.
    calls: list[Call] = []
    for path, number, result in _results(state["intermediates"]):
        base = (path or "output") + (f"@{number}" if number else "")
        leaves = jax.tree_util.tree_leaves(result)
        names = [written.setdefault(id(leaf), base if len(leaves) == 1 else f"{base}.{at}")
                 for at, leaf in enumerate(leaves)]
        values.update(zip(names, map(numpy.asarray, leaves)))
        calls.append(Call("module", path.rpartition(".")[2] or type(model).__name__, [], names,
                          path, number))
    write_capture(folder, values, calls, model={"class": type(model).__name__},
                  framework={"flax": flax.__version__, "jax": jax.__version__},
                  parameters=[name for name, _ in _flat(variables.get("params", {}))])
    return output


def _results(tree: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, int, Any]]:
    """(path, number of the call, result), containers behind what is in them."""
    own: list[tuple[str, int, Any]] = []
    for key, value in tree.items():
        if is_mapping(value):
            yield from _results(value, f"{path}.{key}" if path else str(key))
        else:  # A tuple with one result for each call of a method, "__call__" for most.
            place = path if key == "__call__" else f"{path}.{key}" if path else str(key)
            own += [(place, number, result) for number, result in enumerate(value)]
    yield from own


def _flat(tree: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    if is_mapping(tree):
        for key, value in tree.items():
            yield from _flat(value, f"{path}.{key}" if path else str(key))
    else:
        yield path, tree
