#!/usr/bin/env python3
"""Writes what the fuzzer starts from for readers of folders: the files of one in one file each.

The path of each file stands between two lines of "@@", as fuzz_readers.cpp reads them.
"""
import pathlib
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
FILE_MAX = 1500  # What the fuzzer changes at random should be small.
SEED_MAX = 9000


def in_zip(path):
    with zipfile.ZipFile(path) as archive:
        names = [name for name in archive.namelist() if not name.endswith("/")]
        files = [(name, archive.read(name)) for name in names]
    if len({name.split("/")[0] for name in names}) > 1:
        return files
    return [(name.split("/", 1)[1], data) for name, data in files]


def in_folder(path):
    return [(str(file.relative_to(path)), file.read_bytes())
            for file in sorted(path.rglob("*")) if file.is_file()]


def small(files):
    kept, size = [], 0
    for name, data in files:
        if len(data) <= FILE_MAX and size + len(data) <= SEED_MAX:
            kept.append((name, data))
            size += len(data)
    return kept


def main():
    data = ROOT / "tests/data"
    seeds = {f"zarr-{name}": small(in_zip(data / f"zarr/{name}.zip"))
             for name in ("v2", "v3", "orbax")}
    seeds["torch-dcp"] = in_folder(data / "formats/dcp")
    for stage in ("zero2", "zero3"):
        step = next(path for path in (data / "torch" / stage).iterdir() if path.is_dir())
        seeds[f"torch-{stage}"] = in_folder(step)
    for name, files in seeds.items():
        parts = [part for path, content in files for part in (path.encode(), content)]
        (ROOT / "tests/fuzz/corpus" / name).write_bytes(b"\n@@\n".join(parts))


main()
