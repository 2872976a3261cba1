#!/usr/bin/env python3
"""Makes the files beside it: checkpoints of both versions, a frozen graph, and what is in them.

Made with Python 3.11, tensorflow-cpu 2.21.0, numpy 2.4.6.
"""

import pathlib

import numpy as np
import tensorflow as tf

HERE = pathlib.Path(__file__).parent


def values():
    random = np.random.default_rng(3)
    return {
        "dense/kernel": random.normal(size=(4, 3)).astype(np.float32),
        "dense/bias": random.normal(size=3).astype(np.float16),
        "step": np.int64(1 << 40),
        "mask": np.array([True, False, True]),
        "big": random.normal(size=(100, 2)),
    }


def save_v2(truth):
    """With a variable in two pieces, as partitioned variables are stored."""
    table = random_table()
    truth["table"] = table
    names = [*values(), "table", "table", "labels"]
    tensors = [*values().values(), table[:2], table[2:], np.array([b"cat", b"dog"])]
    slices = [""] * len(values()) + ["5 70 0,2:-", "5 70 2,3:-", ""]
    tf.raw_ops.SaveV2(prefix=str(HERE / "v2"), tensor_names=names, shape_and_slices=slices,
                      tensors=tensors)


def random_table():
    return np.random.default_rng(4).normal(size=(5, 70)).astype(np.float32)


def save_v1():
    tf.raw_ops.Save(filename=str(HERE / "v1.ckpt"), tensor_names=list(values()),
                    data=list(values().values()))


def save_graph(truth):
    constants = {
        "kernel": truth["dense/kernel"],
        "ones": np.ones((3, 4), np.float32),
        "zeros": np.zeros((2, 2), np.float64),
        "half": np.full(5, 0.5, np.float16),
        "ints": np.array([3, -4, 5], np.int32),
    }
    with tf.Graph().as_default() as graph:
        for name, value in constants.items():
            tf.constant(value, name=name)
        tf.constant(["a", "b"], name="words")
        definition = graph.as_graph_def()
    for node in definition.node:  # As graph tools shrink them: the last value stands for the rest.
        tensor = node.attr["value"].tensor
        if node.name == "ones":
            tensor.tensor_content = b""
            tensor.float_val[:] = [1.0]
        if node.name == "ints":
            tensor.tensor_content = b""
            tensor.int_val[:] = [3, -4, 5]
            tensor.tensor_shape.dim[0].size = 6
            constants["ints"] = np.array([3, -4, 5, 5, 5, 5], np.int32)
    (HERE / "frozen.pb").write_bytes(definition.SerializeToString())
    truth.update(constants)


def main():
    truth = values()
    save_v2(truth)
    save_v1()
    save_graph(truth)
    np.savez(HERE / "truth.npz", **{name.replace("/", "."): value for name, value in truth.items()})


main()
