"""Makes the files of this folder: python3 make.py OUT. Written with flax 0.12 and msgpack 1.2."""

import json
import os
import sys

import flax.serialization
import jax.numpy as jnp
import numpy as np

OUT = sys.argv[1] if len(sys.argv) > 1 else "."
NUMBERS = np.arange(6, dtype=np.float32).reshape(2, 3) / 4
STATE = {"params": {"dense": {"kernel": NUMBERS, "bias": jnp.asarray(NUMBERS[0], jnp.bfloat16)}},
         "list": [np.int32([1, 2]), np.float64(2.5)], "z": 1 + 2j, "step": 7, "name": "text"}
TRUTH = {"params.dense.kernel": NUMBERS, "params.dense.bias": NUMBERS[0], "list.0": [1, 2],
         "list.1": 2.5, "step": 7}


def note(tensors):
    return {name: {"shape": list(np.shape(value)),
                   "values": np.asarray(value, float).reshape(-1).tolist()}
            for name, value in tensors.items()}


if __name__ == "__main__":
    path = lambda name: os.path.join(OUT, name)
    state = flax.serialization.to_state_dict(STATE)
    with open(path("state.msgpack"), "wb") as file:
        file.write(flax.serialization.msgpack_serialize(state))
    flax.serialization.MAX_CHUNK_SIZE = 16  # As it does above 1 GiB.
    with open(path("chunked.msgpack"), "wb") as file:
        file.write(flax.serialization.msgpack_serialize({"w": NUMBERS}))
    truth = {"state.msgpack": note(TRUTH), "chunked.msgpack": note({"w": NUMBERS})}
    with open(path("truth.json"), "w") as file:
        json.dump({"flax": flax.__version__, "files": truth}, file, indent=1)
