"""Compiles and starts CUDA kernels through NVRTC, which comes with torch, and the driver."""

from __future__ import annotations

import ctypes
import functools
import pathlib
from collections.abc import Iterator, Sequence
from typing import Any

import torch


class CudaError(RuntimeError):
    """NVRTC or the driver cannot do it; the tensors are then compared on the host."""


_DYNAMIC_SHARED = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES.


class Kernel:
    """A compiled function of one device."""

    def __init__(self, handle: Any, module: Any) -> None:
        self._handle = handle
        self._module = module  # Has to stay loaded.
        self._shared = 0

    def start(self, blocks: int, threads: int, arguments: Sequence[Any], shared: int = 0) -> None:
        """Runs in torch's current stream of the current device; arguments are ctypes values.

        shared: bytes of shared memory beside those that the code declares.
        """
        if shared > self._shared:
            _check(_driver().cuFuncSetAttribute(self._handle, _DYNAMIC_SHARED, shared),
                   "cuFuncSetAttribute")
            self._shared = shared
        pointers = (ctypes.c_void_p * len(arguments))(
            *(ctypes.cast(ctypes.byref(each), ctypes.c_void_p).value for each in arguments))
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        _check(_driver().cuLaunchKernel(
            self._handle, blocks, 1, 1, threads, 1, 1, shared, stream, pointers, None),
            "cuLaunchKernel")


@functools.cache
def kernel(device: int, file: str, name: str, defines: tuple[str, ...]) -> Kernel:
    """The function `name` of a source file beside this one, with macros "NAME=VALUE"."""
    major, minor = torch.cuda.get_device_capability(device)
    image = compiled(source_of(file), file, [
        f"--gpu-architecture=sm_{major}{minor}", "--std=c++17", *(f"-D{each}" for each in defines)])
    module, handle = ctypes.c_void_p(), ctypes.c_void_p()
    _check(_driver().cuModuleLoadData(ctypes.byref(module), image), "cuModuleLoadData")
    _check(_driver().cuModuleGetFunction(ctypes.byref(handle), module, name.encode()),
           "cuModuleGetFunction")
    return Kernel(handle, module)


def source_of(file: str) -> str:
    """A source file with all that it needs: NVRTC then looks for no other."""
    here = pathlib.Path(__file__).parent
    return "".join((here / each).read_text(encoding="utf-8")
                   for each in ("sums.cuh", "device.cuh", "records.cuh", file))


def compiled(source: str, name: str, options: Sequence[str]) -> bytes:
    """Machine code; needs NVRTC but no device."""
    nvrtc = _nvrtc()
    program = ctypes.c_void_p()
    _check(nvrtc.nvrtcCreateProgram(ctypes.byref(program), source.encode(), name.encode(), 0, None,
                                    None), "nvrtcCreateProgram")
    try:
        given = (ctypes.c_char_p * len(options))(*(each.encode() for each in options))
        if nvrtc.nvrtcCompileProgram(program, len(options), given):
            log = _text_of(nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog, program)
            raise CudaError(f"{name}: {log.decode(errors='replace')}")
        return _text_of(nvrtc.nvrtcGetCUBINSize, nvrtc.nvrtcGetCUBIN, program)
    finally:
        nvrtc.nvrtcDestroyProgram(ctypes.byref(program))


def _text_of(size_of: Any, get: Any, program: Any) -> bytes:
    size = ctypes.c_size_t()
    _check(size_of(program, ctypes.byref(size)), "NVRTC")
    text = ctypes.create_string_buffer(size.value)
    _check(get(program, text), "NVRTC")
    return text.raw


def _check(status: int, what: str) -> None:
    if status:
        raise CudaError(f"{what} failed with status {status}")


@functools.cache
def _driver() -> Any:
    try:
        return ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        raise CudaError(str(error)) from error


@functools.cache
def _nvrtc() -> Any:
    tried: list[str] = []
    for name in _places():
        try:
            return ctypes.CDLL(name)
        except OSError as error:
            tried.append(str(error))
    raise CudaError("NVRTC is not installed: " + "; ".join(tried[-2:]))


def _places() -> Iterator[str]:
    """Beside torch, in NVIDIA's packages, or where the system has libraries."""
    home = pathlib.Path(torch.__file__).parent
    for folder in (home.parent / "nvidia", home / "lib"):
        for path in sorted(folder.glob("**/libnvrtc.so*"), reverse=True):
            yield str(path)
    major = (torch.version.cuda or "13").partition(".")[0]
    yield f"libnvrtc.so.{major}"
    yield "libnvrtc.so"
