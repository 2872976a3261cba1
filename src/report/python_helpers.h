// The functions that a conversion script starts with (conversion_python.h).

#pragma once

#include <string_view>

namespace tensordiff {

inline constexpr std::string_view kPythonHelpers = R"(import numpy as np


def names(a, b, numbers, numbers_b=None):
    """Pairs of names; each '#' of a pattern is one of the numbers."""
    def fill(pattern, values):
        first, *rest = pattern.split("#")
        return first + "".join(f"{value}{text}" for value, text in zip(values, rest))
    return [(fill(a, x), fill(b, y)) for x, y in zip(numbers, numbers_b or numbers)]


def dtype_of(name):
    if name != "bfloat16":
        return np.dtype(name)
    import ml_dtypes
    return np.dtype(ml_dtypes.bfloat16)


def out(b, name, shape, dtype):
    """The tensor of B to fill: parts of a fused one come from several tensors of A."""
    return b.setdefault(name, np.zeros(shape, dtype_of(dtype)))


def split(x, axis, *sizes):
    return x.reshape(x.shape[:axis] + sizes + x.shape[axis + 1:])


def part(x, axis, first, size):
    return x[(slice(None),) * axis + (slice(first, first + size),)]


def regroup(x, axis, groups, queries):
    """Groups of queries, a key and a value each, as all queries, all keys, all values."""
    heads = split(x, axis, groups, queries + 2, x.shape[axis] // groups // (queries + 2))
    parts = [part(heads, axis + 1, first, size) for first, size in
             ((0, queries), (queries, 1), (queries + 1, 1))]
    flat = [each.reshape(x.shape[:axis] + (-1,) + x.shape[axis + 1:]) for each in parts]
    return np.concatenate(flat, axis)


def reorder(x, axis, order):
    """Equal parts of an axis in another order."""
    parts = np.split(x, len(order), axis)
    return np.concatenate([parts[i] for i in order], axis)


def ranks(a, name):
    """What each rank holds of a tensor, in order. To do: as your checkpoint stores it."""
    return a[name]


def wide(x):
    """Half precision is computed in float32."""
    return x.astype(np.float32) if x.dtype.itemsize < 4 else x


def weight_norm(direction, length, axis):
    """length * direction / |direction|, for each entry of an axis or for all of them."""
    v = wide(direction)
    others = tuple(i for i in range(v.ndim) if i != axis)
    norm = np.sqrt(np.sum(v.astype(np.float64) ** 2, others, keepdims=True)).astype(v.dtype)
    return v * (wide(length).reshape(norm.shape) / norm)


def lora(weight, down, up, scale, turned=False):
    """The weight with its update. turned: the weight is stored as [in, out]."""
    update = (up.reshape(up.shape[0], -1).astype(np.float64)
              @ down.reshape(down.shape[0], -1).astype(np.float64)) * scale
    return weight + (update.T if turned else update).reshape(weight.shape)


def folded(weight, variance, gamma, axis, epsilon):
    """A weight with the factor of the batch norm behind it, as PyTorch computes it."""
    by = 1 / np.sqrt(wide(variance) + epsilon)
    by = by if gamma is None else wide(gamma) * by
    return wide(weight) * by.reshape([-1 if i == axis else 1 for i in range(weight.ndim)])


def folded_bias(variance, mean, gamma, beta, bias, epsilon):
    """The bias that a batch norm leaves; gamma, beta and bias may be None."""
    value = (0 if bias is None else wide(bias)) - wide(mean)
    value = value * (1 / np.sqrt(wide(variance) + epsilon))
    value = value if gamma is None else value * wide(gamma)
    return value if beta is None else value + wide(beta)


def join_parts(shards, axis, sizes):
    """Each rank holds several parts: all first parts, then all second ones."""
    starts = np.cumsum([0, *sizes[:-1]])
    return np.concatenate([part(x, axis, first, size) for first, size in zip(starts, sizes)
                           for x in shards], axis)


)";

}  // namespace tensordiff
