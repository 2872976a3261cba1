#!/usr/bin/env python3
"""Makes the files beside it: blocks of every GGUF type, and what gguf says their values are.

Made with Python 3.11, gguf 0.19.0, numpy 2.4.6, safetensors 0.8.0.
"""

import pathlib

import gguf
import numpy as np
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType as Type
from safetensors.numpy import save_file

HERE = pathlib.Path(__file__).parent
BLOCKS = 3
# Where in a block its float16 numbers lie: random bytes would be NaN now and then.
HALVES = {"Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q8_0": [0], "Q2_K": [80, 82],
          "Q3_K": [108], "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208], "IQ4_NL": [0],
          "IQ4_XS": [0], "TQ1_0": [52], "TQ2_0": [64], "MXFP4": [], "NVFP4": [], "Q1_0": [0]}
UNDECODED = ["IQ1_S", "IQ1_M", "IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ3_XXS", "IQ3_S"]


def q1_0(blocks):
    """Which gguf lists but does not decode."""
    scale = blocks[:, :2].copy().view(np.float16).astype(np.float32)
    bits = np.unpackbits(blocks[:, 2:], axis=1, bitorder="little")
    return np.where(bits, scale, -scale)


def random_blocks(random, name):
    block, size = GGML_QUANT_SIZES[Type[name]]
    blocks = random.integers(0, 256, (BLOCKS, size), dtype=np.uint8)
    for at in HALVES.get(name, []):
        scale = random.uniform(-2, 2, BLOCKS).astype(np.float16)
        blocks[:, at:at + 2] = scale.view(np.uint8).reshape(BLOCKS, 2)
    if name == "MXFP4":
        blocks[:, 0] = [0, 1, 130]  # The two smallest exponents are subnormal.
    return blocks, block


def main():
    random = np.random.default_rng(8)
    writer = gguf.GGUFWriter(HERE / "blocks.gguf", "llama")
    writer.add_uint32("answer", 42)
    writer.add_array("some.floats", [0.5, 1.5])
    writer.add_array("tokenizer.ggml.tokens", [f"t{i}" for i in range(20)])
    values = {}
    for name in [*HALVES, *UNDECODED]:
        blocks, size = random_blocks(random, name)
        writer.add_tensor(name.lower(), blocks.reshape(1, -1), raw_dtype=Type[name])
        if name in UNDECODED:
            continue
        decoded = q1_0(blocks) if name == "Q1_0" else gguf.quants.dequantize(blocks, Type[name])
        values[name.lower()] = decoded.astype(np.float32).reshape(1, BLOCKS * size)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    save_file(values, HERE / "blocks.safetensors")


main()
