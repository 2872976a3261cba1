"""Imported by SGLang in each of its processes; see ../sglang.py. It has no models."""

from ..sglang import install

install()
