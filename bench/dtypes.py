"""Every dtype against f32: bytes a second of the program, quantized blocks, and what is unpacked.

Speed is told twice: by the clock, and by CPU time (user and system), which does not depend on what
else runs on the machine.
"""
import concurrent.futures
import ctypes
import ctypes.util
import gzip
import io
import json
import os
import struct
import tarfile
import time
import zipfile
import zlib

import numpy as np

import data

MIB = 1 << 20
COLUMNS = 4096
PAIRS = [("f32", "F32", "F32"), ("f64", "F64", "F64"), ("bf16", "BF16", "BF16"),
         ("f16", "F16", "F16"), ("f8_e4m3", "F8_E4M3", "F8_E4M3"),
         ("f8_e5m2", "F8_E5M2", "F8_E5M2"), ("f8_e4m3fnuz", "F8_E4M3FNUZ", "F8_E4M3FNUZ"),
         ("f8_e5m2fnuz", "F8_E5M2FNUZ", "F8_E5M2FNUZ"), ("i8", "I8", "I8"), ("u8", "U8", "U8"),
         ("bool", "BOOL", "BOOL"), ("i16", "I16", "I16"), ("i32", "I32", "I32"),
         ("i64", "I64", "I64"), ("f32 against bf16", "F32", "BF16"),
         ("f32 against f16", "F32", "F16"), ("bf16 against f8_e4m3", "BF16", "F8_E4M3")]


def least(bench, command):
    """The least seconds of the clock and of the CPU over the repeats."""
    costs = [bench.cost(command) for _ in range(bench.options.repeat)]
    return min(clock for _, clock in costs), min(cpu for cpu, _ in costs)


def compared(bench, a, b, threads):
    return least(bench, [bench.program, a, b, "-o", "report", "--no-diagnose",
                         "--threads", str(threads)])


class Rates:
    """Bytes a second by the clock and by the CPU, against those of f32 with as many threads."""

    def __init__(self):
        self.f32 = {}

    def note(self, name, threads, size, cost):
        rates = [size / cost[0] / 1e9, size / cost[1] / 1e9]
        if name == "f32":
            self.f32[threads] = rates
        known = self.f32.get(threads)
        by_f32 = "" if known is None else (f", {rates[0] / known[0]:.2f} of f32's"
                                           f" ({rates[1] / known[1]:.2f} by CPU)")
        return f"{rates[0]:.2f} GB/s{by_f32}"


def plain(bench, rates):
    size = bench.options.size * MIB
    for name, dtype_a, dtype_b in PAIRS:
        if not bench.wanted(name) and name != "f32":
            continue
        count = size // data.ITEM[dtype_a]
        scale = {"I16": 1e3, "I32": 1e6, "I64": 1e6, "I8": 30.0, "U8": 30.0}.get(dtype_a, 1.0)
        noise = 1e-6 if dtype_b in ("F32", "F64", "I32", "I64") else 1e-3
        a = bench.file(f"{dtype_a}-{bench.options.size}-a.safetensors", data.safetensors,
                       dtype_a, count, 0.0, None, scale)
        b = bench.file(f"{dtype_b}-{count}-{noise}-b.safetensors", data.safetensors,
                       dtype_b, count, noise, None, scale)
        data.warm(a, b)
        total = os.path.getsize(a) + os.path.getsize(b)
        for threads in sorted({1, bench.cores}):
            raw = min(bench.raw_seconds(a, b, threads) for _ in range(bench.options.repeat))
            cost = compared(bench, a, b, threads)
            bench.row(f"{name}, {threads} thread(s): time / raw read", cost[0] / raw, "x",
                      rates.note(name, threads, total, cost))


def blocks_q8_0(values):
    """A half scale and 32 signed bytes for 32 values."""
    rows = values.reshape(-1, 32)
    scale = np.maximum(np.abs(rows).max(1), 1e-6) / 127
    codes = np.rint(rows / scale[:, None]).astype(np.int8)
    return np.concatenate([scale.astype(np.float16)[:, None].view(np.uint8),
                           codes.view(np.uint8)], 1)


def blocks_q4_k(values):
    """144 bytes for 256 values: all eight groups have one scale and one minimum, which is enough
    to be decoded as any other block is."""
    rows = values.reshape(-1, 256)
    low, high = rows.min(1), rows.max(1)
    step, below = np.maximum(high - low, 1e-6) / 15 / 32, -low / 32
    head = np.stack([step, below], 1).astype(np.float16).view(np.uint8)
    scales = np.full((len(rows), 12), 0b10100000, np.uint8)  # Sixteen numbers of six bits: all 32.
    scales[:, 8:] = 0
    codes = np.clip(np.rint((rows + below[:, None] * 32) / (step[:, None] * 32)), 0, 15)
    codes = codes.astype(np.uint8).reshape(-1, 4, 2, 32)
    packed = (codes[:, :, 0] | (codes[:, :, 1] << 4)).reshape(len(rows), 128)
    return np.concatenate([head, scales, packed], 1)


QUANTIZED = {"q8_0": (8, blocks_q8_0), "q4_K": (12, blocks_q4_k)}


def gguf(path, kind, count):
    """One tensor `w` of `count` values in rows of COLUMNS."""
    number, encode = QUANTIZED[kind]

    def text(value):
        return struct.pack("<Q", len(value)) + value

    head = b"GGUF" + struct.pack("<IQQ", 3, 1, 0)
    head += text(b"w") + struct.pack("<IQQIQ", 2, COLUMNS, count // COLUMNS, number, 0)
    with open(path, "wb") as file:
        file.write(head + b"\0" * (-len(head) % 32))
        for values in data.chunks(count, 1, 0.0):
            file.write(encode(values).tobytes())


def quantized(bench, rates):
    """Against f16; the bytes of both sides are counted as f16."""
    count = bench.options.size * MIB // 2
    for kind in QUANTIZED:
        if not bench.wanted(kind):
            continue
        a = bench.file(f"F16-{bench.options.size}-rows.safetensors", data.safetensors, "F16", count,
                       0.0, [count // COLUMNS, COLUMNS])
        b = bench.file(f"{kind}-{count}.gguf", gguf, kind, count)
        data.warm(a, b)
        for threads in sorted({1, bench.cores}):
            cost = compared(bench, a, b, threads)
            bench.row(f"f16 against {kind}, {threads} thread(s)", cost[0], "s",
                      rates.note(kind, threads, 4 * count, cost))


MEMBERS = 8


def member(index, size, noise):
    for values in data.chunks(size // 4, 10 + index, noise):
        yield values.tobytes()


def npy_bytes(index, size, noise):
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        file, {"descr": "<f4", "fortran_order": False, "shape": (size // 4,)})
    return file.getvalue() + b"".join(member(index, size, noise))


def deflated(path, size, noise=0.0):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
        for index in range(MEMBERS):
            archive.writestr(f"w{index}.npy", npy_bytes(index, size // MEMBERS, noise))


def tgz(path, size, noise=0.0):
    with gzip.open(path, "wb", compresslevel=6) as zipped, \
            tarfile.open(fileobj=zipped, mode="w") as archive:
        for index in range(MEMBERS):
            content = npy_bytes(index, size // MEMBERS, noise)
            entry = tarfile.TarInfo(f"w{index}.npy")
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))


def inflate_members(path):
    """What libdeflate alone takes for the members of a zip: a function for each."""
    library = ctypes.CDLL(ctypes.util.find_library("deflate") or "libdeflate.so.0")
    library.libdeflate_alloc_decompressor.restype = ctypes.c_void_p
    jobs = []
    with open(path, "rb") as file, zipfile.ZipFile(path) as archive:
        whole = file.read()
        for entry in archive.infolist():
            name, extra = struct.unpack_from("<HH", whole, entry.header_offset + 26)
            first = entry.header_offset + 30 + name + extra
            packed = whole[first:first + entry.compress_size]

            def job(packed=packed, size=entry.file_size):
                out = ctypes.create_string_buffer(size)
                one = ctypes.c_void_p(library.libdeflate_alloc_decompressor())
                status = library.libdeflate_deflate_decompress(
                    one, packed, ctypes.c_size_t(len(packed)), out, ctypes.c_size_t(size), None)
                library.libdeflate_free_decompressor(one)
                assert status == 0
            jobs.append(job)
    return jobs


def inflate_stream(path):
    with open(path, "rb") as file:
        packed = file.read()

    def job():
        stream = zlib.decompressobj(31)
        rest = packed
        while rest:
            stream.decompress(rest, 1 << 20)
            rest = stream.unconsumed_tail
    return [job]


def jobs_cost(jobs, threads):
    start, before = time.perf_counter(), time.process_time()
    with concurrent.futures.ThreadPoolExecutor(threads) as pool:
        list(pool.map(lambda job: job(), jobs))
    return time.perf_counter() - start, time.process_time() - before


def unpacked(bench):
    """The program on two archives by nothing but decompressing both, a stream for each core."""
    size = bench.options.size // 4 * MIB
    for name, make, streams in (("deflated members", deflated, inflate_members),
                                (".tgz", tgz, inflate_stream)):
        if not bench.wanted(name):
            continue
        end = "npz" if make is deflated else "tgz"
        a = bench.file(f"packed-{size}-a.{end}", make, size)
        b = bench.file(f"packed-{size}-b.{end}", make, size, 1e-6)
        data.warm(a, b)
        jobs = streams(a) + streams(b)
        alone = [jobs_cost(jobs, bench.cores) for _ in range(bench.options.repeat)]
        ours = least(bench, [bench.program, a, b, "-o", "report", "--no-diagnose"])
        alone = min(clock for clock, _ in alone), min(cpu for _, cpu in alone)
        bench.row(f"{name}: time / decompressing alone", ours[0] / alone[0], "x",
                  f"{2 * size / ours[0] / 1e9:.2f} GB/s unpacked, {ours[1] / alone[1]:.2f} by CPU")


def run(bench):
    names = [name for name, _, _ in PAIRS] + list(QUANTIZED)
    rates = Rates()
    if any(bench.wanted(name) for name in names):
        plain(bench, rates)
        quantized(bench, rates)
    unpacked(bench)
