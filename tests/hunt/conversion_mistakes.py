"""Mistakes that converters make in one place, and what should be said of them."""

import numpy as np

import conversion_kit as kit

# Left out of the conversion, and the codes that name it.
STEPS = {
    "transpose": {"not_transposed", "axis_permutation"},
    "rope": {"rope_rows_missing", "row_order", "rope_rows_changed"},
    "offset": {"offset"},
    "order": {"parts_exchanged", "block_permutation", "other_tensor"},
    "by_head": {"row_order", "parts_exchanged", "block_permutation", "row_permutation"},
    "stack": {"parts_exchanged", "other_tensor", "block_permutation"},
}
EXCHANGED = {"other_tensor", "parts_exchanged"}


def _tensors(kit_, least=8):
    """The tensors of B that mistakes are planted in: large enough to be told apart."""
    return [
        name
        for name, made in kit_.b.items()
        if made.value.size >= least
        and not name.endswith("num_batches_tracked")
        and made.value.dtype != np.int64
    ]


def _other_number(kit_, rng, same_pattern):
    """Two tensors of one shape: of one kind, or of two."""
    names = _tensors(kit_)
    rng.shuffle(names)
    for one in names:
        for other in names:
            x, y = kit_.b[one].value, kit_.b[other].value
            kind = kit.pattern_of(one) == kit.pattern_of(other)
            if (
                one != other
                and x.shape == y.shape
                and kind == same_pattern
                and not np.array_equal(x, y)
            ):
                if same_pattern or _numbers(one) and _numbers(other):
                    return one, other
    return None


def _numbers(name):
    return [part for part in name.replace("/", ".").replace("_", ".").split(".") if part.isdigit()]


def _in_one_layer(kit_, rng):
    names = _tensors(kit_)
    rng.shuffle(names)
    for one in names:
        for other in names:
            x, y = kit_.b[one].value, kit_.b[other].value
            if (
                one != other
                and x.shape == y.shape
                and _numbers(one)
                and _numbers(one) == _numbers(other)
                and kit.pattern_of(one) != kit.pattern_of(other)
            ):
                return one, other
    return None


def _tables(kit_):
    return [
        name
        for name in _tensors(kit_)
        if kit_.b[name].value.ndim == 2
        and len(kit_.b[name].value) > 60
        and ("embed" in name or "embd" in name or "wte" in name)
        and "patch" not in name
    ]


def choose(rng, clean):
    steps = [step for step in STEPS if clean.done.get(step)]
    if steps and rng.random() < 0.5:
        return str(rng.choice(steps))
    kinds = [
        kind
        for kind, can in (
            ("layers", _other_number(clean, rng, True)),
            ("within", _in_one_layer(clean, rng)),
            ("crossed", _other_number(clean, rng, False)),
            ("stale", True),
            ("copied", _other_number(clean, rng, True)),
            ("shifted", _tables(clean)),
            ("padded", _tables(clean)),
            ("front", _tables(clean)),
        )
        if can
    ]
    return str(rng.choice(kinds))


def _exchange(b, one, other):
    x, y = b[one], b[other]
    b[one], b[other] = kit.Made(y.value, x.sources), kit.Made(x.value, y.sources)


def plant(rng, kind, clean, source, script):
    """B with the mistake, the names that hold it, and the codes that name it."""
    b = dict(clean.b)
    if not kind:
        return b, set(), set()
    if kind in STEPS:
        sources = clean.done[kind][int(rng.integers(len(clean.done[kind])))]
        wrong = kit.Kit(source.tensors, {kind: [sources]})
        script(wrong, source)
        guilty = {name for name in b if not np.array_equal(b[name].value, wrong.b[name].value)}
        return wrong.b, guilty, STEPS[kind]
    if kind in ("layers", "within", "crossed", "copied"):
        one, other = (
            _in_one_layer(clean, rng)
            if kind == "within"
            else _other_number(clean, rng, kind != "crossed")
        )
        if kind == "copied":
            b[one] = kit.Made(b[other].value, b[one].sources)
            return b, {one}, {"other_tensor"}
        _exchange(b, one, other)
        return b, {one, other}, EXCHANGED
    if kind == "stale":
        name = str(rng.choice(_tensors(clean)))
        value = b[name].value
        noise = rng.standard_normal(value.shape).astype(np.float32) * max(
            float(np.std(value)), 1e-3
        )
        b[name] = kit.Made(value + noise * np.float32(rng.choice([0.1, 0.5])), b[name].sources)
        return b, {name}, set()
    name = str(rng.choice(_tables(clean)))
    value = b[name].value
    if kind == "shifted":
        b[name] = kit.Made(np.roll(value, 1, 0), b[name].sources)
        return b, {name}, {"row_permutation", "token_shift", "shifted_rows", "block_permutation"}
    padding = np.zeros((int(rng.integers(5, 40)), value.shape[1]), np.float32)
    if kind == "padded":
        b[name] = kit.Made(np.concatenate([value, padding]), b[name].sources)
        return b, set(), set()
    b[name] = kit.Made(np.concatenate([padding, value]), b[name].sources)
    return b, {name}, {"shifted_rows", "row_permutation", "token_shift", "region"}
