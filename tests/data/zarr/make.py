"""Makes the files of this folder: python3 make.py OUT.

Written by zarr 3.1.6, numcodecs 0.16.6, orbax-checkpoint 0.12.8, tensorstore 0.1.86, numpy 2.4.6.
Each store is a folder of many small files and is kept as one zip. truth.json has name, shape and all
values, as numpy holds them.
"""

import json
import pathlib
import shutil
import sys
import tempfile
import zipfile

import ml_dtypes
import numcodecs
import numpy as np
import orbax.checkpoint as ocp
import zarr

values = np.random.default_rng(3)
truth = {}


def some(*shape, dtype="f4"):
    return (values.standard_normal(shape) * 8).astype(dtype)


def remember(file, name, array):
    numbers = np.asarray(array, dtype=np.float64).reshape(-1)
    truth.setdefault(file, {})[name] = {"shape": list(array.shape), "values": numbers.tolist()}


def add(group, file, name, array, **how):
    made = group.create_array(name, shape=array.shape, dtype=array.dtype, **how)
    made[...] = array
    remember(file, name, array)


def version2(folder):
    group = zarr.open_group(folder, mode="w", zarr_format=2)
    chunks = {"chunks": (4, 3)}
    for name, packed in {
            "plain": None, "zlib": numcodecs.Zlib(), "gzip": numcodecs.GZip(),
            "zstd": numcodecs.Zstd(), "lz4": numcodecs.LZ4(), "blosc": numcodecs.Blosc(),
            "blosclz": numcodecs.Blosc("blosclz"),
            "blosc_zlib": numcodecs.Blosc("zlib", shuffle=0),
            "bits": numcodecs.Blosc("zstd", shuffle=2)}.items():
        add(group, "v2.zip", name, some(6, 5), compressors=packed, **chunks)
    # Long and regular enough to be packed in several streams.
    add(group, "v2.zip", "long", np.arange(2000, dtype="f8") // 7, chunks=(1500,),
        compressors=numcodecs.Blosc("lz4"))
    add(group, "v2.zip", "long_blosclz", np.arange(2000, dtype="i4") // 7, chunks=(2000,),
        compressors=numcodecs.Blosc("blosclz"))
    add(group, "v2.zip", "whole", some(2, 3, dtype="i2"), chunks=(2, 3), compressors=None)
    add(group, "v2.zip", "columns", some(5, 4, 2), chunks=(2, 3, 2), order="F", compressors=None)
    add(group, "v2.zip", "big", some(7, dtype=">f8"), chunks=(7,), compressors=None)
    add(group, "v2.zip", "inner/nested", some(4, 4, dtype="f2"), chunks=(2, 2),
        chunk_key_encoding={"name": "v2", "separator": "/"})
    add(group, "v2.zip", "shuffled", some(9), chunks=(9,), compressors=numcodecs.Zlib(),
        filters=[numcodecs.Shuffle(4)])
    add(group, "v2.zip", "number", np.array(2.5), compressors=None)
    holed = group.create_array("holed", shape=(6,), chunks=(2,), dtype="f4", fill_value=-3.5)
    holed[2:4] = [1, 2]
    remember("v2.zip", "holed", np.array([-3.5, -3.5, 1, 2, -3.5, -3.5]))
    group.create_array("delta", shape=(4,), chunks=(4,), dtype="i4",
                       filters=[numcodecs.Delta("i4")])[...] = [1, 2, 3, 4]


def version3(folder):
    codecs = zarr.codecs
    group = zarr.open_group(folder, mode="w", zarr_format=3)
    chunks = {"chunks": (4, 3)}
    add(group, "v3.zip", "default", some(6, 5), **chunks)
    add(group, "v3.zip", "plain", some(6, 5, dtype="i8"), compressors=None, **chunks)
    add(group, "v3.zip", "gzip", some(6, 5, dtype="u1"), compressors=codecs.GzipCodec(), **chunks)
    add(group, "v3.zip", "blosc", some(6, 5), compressors=codecs.BloscCodec(), **chunks)
    add(group, "v3.zip", "summed", some(6, 5), **chunks,
        compressors=[codecs.ZstdCodec(), codecs.Crc32cCodec()])
    add(group, "v3.zip", "summed_first", some(6, 5), **chunks,
        compressors=[codecs.Crc32cCodec(), codecs.GzipCodec()])
    add(group, "v3.zip", "turned", some(5, 4, 2), chunks=(2, 3, 2), compressors=None,
        filters=[codecs.TransposeCodec(order=(2, 0, 1))])
    add(group, "v3.zip", "big", some(7), chunks=(7,), compressors=None,
        serializer=codecs.BytesCodec(endian="big"))
    add(group, "v3.zip", "inner/dotted", some(4, 4), chunks=(2, 2),
        chunk_key_encoding={"name": "default", "separator": "."})
    add(group, "v3.zip", "number", np.array(7, dtype="i4"))
    add(group, "v3.zip", "yes", np.array([True, False, True]), chunks=(2,))
    group.create_array("sharded", shape=(8,), chunks=(2,), shards=(4,), dtype="f4")[...] = 1


def orbax(folder):
    tree = {"params": {"dense": {"kernel": some(4, 6), "bias": some(6)},
                       "norm": {"scale": some(6).astype(ml_dtypes.bfloat16)}},
            "step": np.int32(12)}
    handler = ocp.PyTreeCheckpointHandler(use_ocdbt=False)
    ocp.Checkpointer(handler).save(folder, tree)
    remember("orbax.zip", "params.dense.kernel", tree["params"]["dense"]["kernel"])
    remember("orbax.zip", "params.dense.bias", tree["params"]["dense"]["bias"])
    remember("orbax.zip", "params.norm.scale", tree["params"]["norm"]["scale"])
    remember("orbax.zip", "step", np.array(12, dtype="i4"))


def main():
    out = pathlib.Path(sys.argv[1])
    for name, make in {"v2": version2, "v3": version3, "orbax": orbax}.items():
        folder = pathlib.Path(tempfile.mkdtemp()) / name
        make(folder)
        with zipfile.ZipFile(out / f"{name}.zip", "w", zipfile.ZIP_DEFLATED) as archive:
            for path in sorted(folder.rglob("*")):
                if path.is_file():
                    inside = zipfile.ZipInfo(str(path.relative_to(folder.parent)))
                    inside.compress_type = zipfile.ZIP_DEFLATED
                    archive.writestr(inside, path.read_bytes())
        shutil.rmtree(folder.parent)
    (out / "truth.json").write_text(json.dumps({"files": truth}) + "\n")


main()
