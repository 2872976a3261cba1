"""The metrics of a comparison as one would write them with numpy: the peer of bench.py.

    numpy_metrics.py A.npy B.npy
"""
import sys

import numpy as np

CHUNK = 1 << 22


def main(path_a, path_b):
    a_all = np.load(path_a, mmap_mode="r").reshape(-1)
    b_all = np.load(path_b, mmap_mode="r").reshape(-1)
    total = dict(n=0, equal=0, exceeding=0, d_abs=0.0, d2=0.0, rel=0.0,
                 aa=0.0, bb=0.0, ab=0.0, a=0.0, b=0.0)
    most = dict(max_abs=0.0, max_rel=0.0, max_a=-np.inf, max_b=-np.inf,
                min_a=np.inf, min_b=np.inf, ulp=0)
    for first in range(0, a_all.size, CHUNK):
        raw_a, raw_b = a_all[first:first + CHUNK], b_all[first:first + CHUNK]
        a, b = raw_a.astype(np.float64), raw_b.astype(np.float64)
        finite = np.isfinite(a) & np.isfinite(b)
        a, b = a[finite], b[finite]
        d = np.abs(b - a)
        size = np.abs(a)
        larger = np.maximum(size, np.abs(b))
        total["n"] += a.size
        total["equal"] += np.count_nonzero(d == 0)
        total["exceeding"] += np.count_nonzero(d > 1e-5 + 1.3e-6 * size)
        total["d_abs"] += d.sum()
        total["d2"] += d @ d
        total["rel"] += (d / (size + 1e-8)).sum()
        total["aa"] += a @ a
        total["bb"] += b @ b
        total["ab"] += a @ b
        total["a"] += a.sum()
        total["b"] += b.sum()
        most["max_abs"] = max(most["max_abs"], d.max())
        relative = np.divide(d, larger, out=np.zeros_like(d), where=larger > 0)
        most["max_rel"] = max(most["max_rel"], relative.max())
        for side, values in (("a", a), ("b", b)):
            most["max_" + side] = max(most["max_" + side], values.max())
            most["min_" + side] = min(most["min_" + side], values.min())
        if raw_a.dtype == np.float32:
            steps_a, steps_b = (np.where(x < 0, np.int64(-2**31) - x, x)
                                for x in (raw_a.view(np.int32).astype(np.int64),
                                          raw_b.view(np.int32).astype(np.int64)))
            most["ulp"] = max(most["ulp"], np.abs(steps_a - steps_b).max())
    print({**total, **most, "cosine": total["ab"] / np.sqrt(total["aa"] * total["bb"])})


main(*sys.argv[1:])
