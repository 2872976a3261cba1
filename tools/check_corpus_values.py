#!/usr/bin/env python3
"""usage: check_corpus_values.py PROGRAM CORPUS

Compares every value that the program reads out of the corpus with what another reader makes of the
same file: h5py, scipy, onnx, numpy, safetensors and torch (weights only), as far as they are
installed. Files that are hostile, or that only the program is to open, are left out. Prints, for
each reader, how many tensors are right, wrong, and not read by the program; names the wrong ones.
"""

import importlib
import json
import pathlib
import subprocess
import sys
import warnings

import numpy as np

warnings.filterwarnings("ignore")
VALUES_MAX = 10_000_000


def ours(program, path):
    """{name: (shape, values)} of a file, and the names of tensors that could not be read."""
    run = subprocess.run([program, "show", str(path), "--values", str(VALUES_MAX), "-o", "json"],
                         capture_output=True, timeout=60, check=False)
    try:
        tensors = json.loads(run.stdout)["tensors"]
    except (ValueError, KeyError):
        return {}, []
    read = {tensor["name"]: tensor for tensor in tensors if not tensor.get("message")}
    broken = [tensor["name"] for tensor in tensors if tensor.get("message")]
    return read, broken


def numbers(values):
    """One number for each value; complex ones and words for what JSON has not."""
    return np.array([complex(*map(float, value)) if isinstance(value, list) else float(value)
                     for value in values])


def agree(tensor, array):
    array = np.asarray(array)
    if tensor["shape"] != list(array.shape):
        return False
    found = numbers(tensor["values"])
    wanted = array.reshape(-1).astype(np.complex128 if array.dtype.kind == "c" else np.float64)
    return len(found) == len(wanted) and bool(np.all((found == wanted)
                                                     | (np.isnan(found) & np.isnan(wanted))))


def is_numeric(array):
    return isinstance(array, (np.ndarray, np.generic)) and array.dtype.kind in "biufc" \
        and array.dtype.itemsize <= 16 and array.dtype != np.longdouble


def read_h5py(path):
    import h5py
    found = {}

    def visit(name, node):
        if isinstance(node, h5py.Dataset) and node.dtype.kind in "biufc" and node.shape is not None:
            if node.size <= VALUES_MAX and node.dtype != np.longdouble:
                try:
                    found[name] = node[()]
                except OSError:
                    pass
    with h5py.File(path, "r") as file:
        file.visititems(visit)
    return found


def read_scipy(path):
    import scipy.io
    import scipy.sparse
    found = {}
    for name, value in scipy.io.loadmat(path).items():
        if scipy.sparse.issparse(value):
            value = value.toarray()
        if not name.startswith("__") and is_numeric(value):
            found[name] = value
    return found


def read_onnx(path):
    import onnx
    from onnx import numpy_helper
    if path.suffix == ".pb":
        tensor = onnx.TensorProto.FromString(path.read_bytes())
        if not tensor.data_type or tensor.data_type == onnx.TensorProto.STRING:
            return {}
        return {tensor.name: numpy_helper.to_array(tensor)}
    graph = onnx.load(path, load_external_data=False).graph
    return {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer
            if tensor.data_type != onnx.TensorProto.STRING}


def read_numpy(path):
    file = np.load(path, allow_pickle=False)
    if isinstance(file, np.ndarray):
        return {"": file} if is_numeric(file) else {}
    return {name: file[name] for name in file.files if is_numeric(file[name])}


def read_safetensors(path):
    from safetensors.torch import load_file
    return {name: as_array(tensor) for name, tensor in load_file(path).items()}


def as_array(tensor):
    import torch
    tensor = tensor.detach()
    if tensor.is_quantized:
        tensor = tensor.dequantize()
    if tensor.layout != torch.strided:
        tensor = tensor.to_dense()
    if not tensor.dtype.is_complex and tensor.dtype.is_floating_point:
        tensor = tensor.double()
    return tensor.resolve_conj().resolve_neg().numpy()


def read_torch(path):
    import torch
    found = {}

    def walk(value, name):
        if isinstance(value, torch.Tensor):
            found[name] = as_array(value)
        items = value.items() if isinstance(value, dict) else \
            enumerate(value) if isinstance(value, (list, tuple)) else ()
        for key, inner in items:
            walk(inner, f"{name}.{key}" if name else str(key))

    walk(torch.load(path, weights_only=True, map_location="cpu"), "")
    return found


# Who reads what: files whose path below the corpus ends so, in these projects.
READERS = {
    "h5py": (read_h5py, (".h5", ".hdf5", ".nc"), ("jamesmudd__jhdf", "jjhelmus__pyfive",
                                                  "h5py__h5py")),
    "scipy": (read_scipy, (".mat",), ("scipy__scipy", "tbeu__matio")),
    "onnx": (read_onnx, (".onnx", ".pb"), ("onnx__onnx",)),
    "numpy": (read_numpy, (".npy", ".npz"), ("huggingface__candle", "LaurentMazare__tch-rs",
                                             "scipy__scipy")),
    "safetensors": (read_safetensors, (".safetensors",), ("huggingface__candle",
                                                          "tracel-ai__burn", "kako-jun__diffai")),
    "torch": (read_torch, (".pt", ".pth", ".bin"), ("huggingface__candle", "tracel-ai__burn",
                                                    "kako-jun__diffai")),
}


def check(program, path, read, wrong):
    """Right, wrong and unread tensors of one file."""
    try:
        theirs = read(path)
    except Exception:  # pylint: disable=broad-except
        return 0, 0, 0  # It cannot say what is in it either.
    mine, broken = ours(program, path)
    right = bad = unread = 0
    for name, array in theirs.items():
        if np.asarray(array).size > VALUES_MAX:
            continue
        if name not in mine and len(mine) == len(theirs) == 1:
            name = next(iter(mine))  # A single tensor may go without its name.
        if name not in mine:
            unread += 1
            wrong.append(f"{path}: '{name}' {'declined' if name in broken else 'not read'}")
        elif agree(mine[name], array):
            right += 1
        else:
            bad += 1
            wrong.append(f"{path}: '{name}' WRONG: {mine[name]['shape']} against {array.shape}")
    return right, bad, unread


def main():
    program, corpus = sys.argv[1], pathlib.Path(sys.argv[2])
    print(f"{'reader':12} {'files':>6} {'right':>6} {'wrong':>6} {'unread':>6}")
    all_bad, notes = 0, []
    for name, (read, endings, projects) in READERS.items():
        try:
            importlib.import_module(name)
        except ImportError:
            print(f"{name:12} is not installed")
            continue
        paths = [path for project in projects for path in sorted((corpus / project).rglob("*"))
                 if path.is_file() and path.suffix in endings]
        counts = [check(program, path, read, notes) for path in paths]
        right, bad, unread = (sum(column) for column in zip(*counts)) if counts else (0, 0, 0)
        files = sum(1 for count in counts if any(count))
        print(f"{name:12} {files:6} {right:6} {bad:6} {unread:6}")
        all_bad += bad
    print(*notes, sep="\n")
    return 1 if all_bad else 0


if __name__ == "__main__":
    sys.exit(main())
