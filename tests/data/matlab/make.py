"""Makes the files of this folder: python3 make.py OUT. Written with scipy 1.17 and numpy 2.4."""

import json
import os
import sys

import numpy as np
import scipy.io
import scipy.sparse

OUT = sys.argv[1] if len(sys.argv) > 1 else "."
NUMBERS = np.arange(6, dtype=np.float64).reshape(2, 3) / 4
PLAIN = {"d": NUMBERS, "f": NUMBERS.astype(np.float32), "z": NUMBERS + 2j, "i": np.int16([[1, -2]]),
         "u": np.uint8([[7]]), "t": "text"}
RICH = PLAIN | {"b": np.array([[True, False]]), "three": np.arange(24.0).reshape(2, 3, 4),
                "l": np.array([[-5]], np.int64), "s": {"x": NUMBERS, "y": {"w": np.float64(3)}},
                "sp": scipy.sparse.csc_matrix(np.array([[0, 2.5], [1, 0], [0, 3]])),
                "c": np.array([NUMBERS, "no", np.float64(9)], dtype=object)}


def note(tensors):
    out = {}
    for name, value in tensors.items():
        value = np.asarray(value)
        flat = value.reshape(-1)
        parts = np.stack([flat.real, flat.imag], 1).reshape(-1) if flat.dtype.kind == "c" else flat
        out[name] = {"shape": list(value.shape), "values": parts.astype(float).tolist()}
    return out


if __name__ == "__main__":
    path = lambda name: os.path.join(OUT, name)
    old = {key: value for key, value in PLAIN.items() if key != "u"}
    scipy.io.savemat(path("v4.mat"), old, format="4")
    scipy.io.savemat(path("v5.mat"), RICH)
    scipy.io.savemat(path("v7.mat"), RICH, do_compression=True)
    plain = {key: value for key, value in old.items() if key != "t"}
    rich = {key: value for key, value in RICH.items() if key not in ("t", "s", "sp", "c")}
    rich |= {"s.x": NUMBERS, "s.y.w": [[3.0]], "sp": RICH["sp"].toarray(), "c.0": NUMBERS,
             "c.2": [[9.0]]}
    truth = {"v4.mat": note(plain), "v5.mat": note(rich), "v7.mat": note(rich)}
    with open(path("truth.json"), "w") as file:
        json.dump({"scipy": scipy.__version__, "files": truth}, file, indent=1)
