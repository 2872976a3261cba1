"""Reads from an ELF file what its build did for security."""

import struct

PT_LOAD, PT_DYNAMIC, PT_INTERP = 1, 2, 3
PT_GNU_STACK, PT_GNU_RELRO = 0x6474E551, 0x6474E552
DT_STRTAB, DT_STRSZ, DT_BIND_NOW, DT_FLAGS, DT_FLAGS_1 = 5, 10, 24, 30, 0x6FFFFFFB
DF_BIND_NOW, DF_1_NOW = 8, 1
ET_DYN = 3


def segments(data):
    """(type, flags, offset, address, size) of each; the file must be a 64-bit little-endian one."""
    if data[:6] != b"\x7fELF\x02\x01":
        raise ValueError("not a 64-bit little-endian ELF file")
    start, = struct.unpack_from("<Q", data, 32)
    size, count = struct.unpack_from("<HH", data, 54)
    for i in range(count):
        kind, flags, offset, address, _, length, _, _ = struct.unpack_from(
            "<IIQQQQQQ", data, start + i * size)
        yield kind, flags, offset, address, length


def dynamic_entries(data, parts):
    entries = {}
    for kind, _, offset, _, length in parts:
        if kind == PT_DYNAMIC:
            for at in range(offset, offset + length, 16):
                tag, value = struct.unpack_from("<QQ", data, at)
                entries[tag] = value
    return entries


def symbol_names(data, parts, entries):
    """The names that the file gives to or takes from others."""
    address = entries.get(DT_STRTAB, 0)
    for kind, _, offset, start, length in parts:
        if kind == PT_LOAD and start <= address < start + length:
            at = offset + address - start
            return set(data[at:at + entries.get(DT_STRSZ, 0)].split(b"\0"))
    return set()


def hardening(data):
    """What is missing, as sentences; empty if nothing is."""
    parts = list(segments(data))
    kinds = {kind: flags for kind, flags, *_ in parts}
    entries = dynamic_entries(data, parts)
    names = symbol_names(data, parts, entries)
    now = (entries.get(DT_FLAGS, 0) & DF_BIND_NOW or entries.get(DT_FLAGS_1, 0) & DF_1_NOW
           or DT_BIND_NOW in entries)
    checks = [
        (struct.unpack_from("<H", data, 16)[0] == ET_DYN, "is not PIE"),
        (PT_GNU_RELRO in kinds, "has no RELRO"),
        (now, "is not bound at its start (-z now)"),
        (b"__stack_chk_fail" in names, "has no stack protector"),
        (any(name.endswith(b"_chk") for name in names), "is not fortified"),
        (not kinds.get(PT_GNU_STACK, 1) & 1, "has an executable stack"),
    ]
    return [sentence for holds, sentence in checks if not holds]
