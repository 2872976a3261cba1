"""Makes the files of this folder: python3 make.py OUT. Written with h5py 3.16 and numpy 2.4.

truth.json has dtype, shape and all values of each dataset as h5py reads them back.
"""

import io
import json
import os
import sys
import zipfile

import h5py
import numpy as np

OUT = sys.argv[1] if len(sys.argv) > 1 else "."
TRUTH = {}


def path(name):
    return os.path.join(OUT, name)


def note(name, reverse=False):
    TRUTH[name] = found = {}

    def visit(key, item):
        if not isinstance(item, h5py.Dataset) or item.dtype.kind not in "iufbc" or item.shape is None:
            return
        values = item[()]
        values = np.asarray(values).T if reverse else np.asarray(values)
        flat = values.reshape(-1)
        parts = np.stack([flat.real, flat.imag], 1).reshape(-1) if flat.dtype.kind == "c" else flat
        found[key] = {"dtype": item.dtype.newbyteorder("=").name, "shape": list(values.shape),
                      "values": parts.astype(np.float64).tolist()}

    with h5py.File(path(name), "r") as file:
        file.visititems(visit)


def numbers(*shape, dtype=np.float32):
    return (np.arange(int(np.prod(shape)), dtype=np.float64) / 4).reshape(shape).astype(dtype)


def fill(file):
    for dtype in ("f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"):
        file[f"types/{dtype}"] = numbers(2, 3, dtype=dtype)
    file["types/bool"] = np.array([True, False, True])
    file["types/c8"] = numbers(3, dtype=np.complex64) + np.complex64(1j)
    file["types/c16"] = numbers(3, dtype=np.complex128) - 2j
    file["types/big"] = numbers(2, 3).astype(">f4")
    file["types/scalar"] = np.float64(2.5)
    file["types/empty"] = np.zeros((0, 3), np.float32)
    chunked = file.create_group("chunked")
    chunked.create_dataset("plain", data=numbers(5, 7), chunks=(2, 3))
    chunked.create_dataset("deflate", data=numbers(5, 7), chunks=(2, 3), compression="gzip")
    chunked.create_dataset("all", data=numbers(4, 3, 5), chunks=(3, 2, 2), compression="gzip",
                           shuffle=True, fletcher32=True)
    chunked.create_dataset("grows", data=numbers(6), chunks=(4,), maxshape=(None,))
    holes = chunked.create_dataset("holes", (4, 4), "f4", chunks=(2, 2), fillvalue=9)
    holes[0, 0] = 1
    chunked.create_dataset("rows", data=numbers(1, 9, 2), chunks=(1, 4, 2), compression="gzip")
    file.create_dataset("unwritten", (3,), "i4", fillvalue=7)
    file.create_dataset("text", data="hello")
    file["soft"] = h5py.SoftLink("/types/f4")
    file["hard"] = file["types/f4"]


def refused():
    with h5py.File(path("refused.h5"), "w") as file:
        file["good"] = numbers(2)
        file["link"] = h5py.ExternalLink("/etc/passwd", "/x")
        file["nowhere"] = h5py.SoftLink("/missing")
        file.create_dataset("outside", (4,), "f4", external=[("elsewhere.bin", 0, 16)])
        layout = h5py.VirtualLayout((2,), "f4")
        layout[:] = h5py.VirtualSource("other.h5", "x", (2,))
        file.create_virtual_dataset("virtual", layout)
        file.create_dataset("packed", data=numbers(64), chunks=(32,), compression="lzf")
        file["pairs"] = np.zeros(2, [("x", "f4"), ("y", "i4")])
        file["self"] = file["/"]
    os.path.exists("elsewhere.bin") and os.remove("elsewhere.bin")


def keras():
    inside = io.BytesIO()
    with h5py.File(inside, "w") as file:
        file["layers/dense/vars/0"] = numbers(3, 2)
        file["layers/dense/vars/1"] = numbers(2)
    with zipfile.ZipFile(path("model.keras"), "w") as archive:
        archive.writestr("metadata.json", '{"keras_version": "3.0.0"}')
        archive.writestr("config.json", "{}")
        archive.writestr("model.weights.h5", inside.getvalue())
    with h5py.File(path("keras2.h5"), "w") as file:
        file.attrs["layer_names"] = [b"dense"]
        group = file.create_group("model_weights/dense")
        group.attrs["weight_names"] = [b"dense/kernel:0"]
        group["dense/kernel:0"] = numbers(3, 2)
    note("keras2.h5")
    # A layer of Python code in the configuration, as Keras 2 writes it; the code is no code.
    layer = {"class_name": "Lambda", "config": {"name": "evil", "function": ["4wE=", None, None]}}
    with h5py.File(path("lambda.h5"), "w") as file:
        file.attrs["model_config"] = json.dumps({"class_name": "Sequential", "config": [layer]})
        file.attrs["training_config"] = np.bytes_("{}")
        file["model_weights/dense/kernel:0"] = numbers(3, 2)


def matlab():
    """As MATLAB writes -v7.3: a text header before the file, and each class as an attribute."""
    name = path("v73.mat")
    with h5py.File(name, "w", userblock_size=512, libver="earliest") as file:
        for key, values, kind in (("m", numbers(3, 2).T, "single"),
                                  ("z", numbers(40, 50, dtype=np.float64).T, "double"),
                                  ("flag", np.array([[1], [0]], np.uint8), "logical"),
                                  ("word", np.array([[104], [105]], np.uint16), "char")):
            packed = {"chunks": (20, 20), "compression": "gzip"} if key == "z" else {}
            data = file.create_dataset(key, data=np.ascontiguousarray(values), **packed)
            data.attrs["MATLAB_class"] = np.bytes_(kind)
    header = b"MATLAB 7.3 MAT-file, Platform: GLNXA64, Created on: now HDF5 schema 1.00 ."
    with open(name, "r+b") as file:
        file.write(header.ljust(124) + b"\x00\x02IM")
    note("v73.mat", reverse=True)
    TRUTH["v73.mat"].pop("word")
    TRUTH["v73.mat"]["flag"]["dtype"] = "bool"


if __name__ == "__main__":
    with h5py.File(path("earliest.h5"), "w", libver="earliest") as made:
        fill(made)
    note("earliest.h5")
    with h5py.File(path("latest.h5"), "w", libver=("v108", "v110")) as made:
        fill(made)
    note("latest.h5")
    with h5py.File(path("small.h5"), "w", libver="latest") as made:
        made["w"] = numbers(3)
    refused()
    keras()
    matlab()
    with open(path("truth.json"), "w") as file:
        json.dump({"h5py": h5py.__version__, "files": TRUTH}, file, indent=1)
