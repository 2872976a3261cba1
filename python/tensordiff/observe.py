"""Watches a model run: every call of a module and of a torch function, in order.

Modules are seen by forward hooks, functions by a TorchFunctionMode, which shows them as they are
written (softmax, scaled_dot_product_attention, add) rather than as kernels; or those, as aten has
them, by a TorchDispatchMode. A Handler is told of each; it may replace the arguments and the result
of a module.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any, Literal

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from .torch_versions import internals, named_modules

Ops = Literal["functions", "none", "aten"]

# Wrappers that put a word into the path of a module and compute nothing.
_WRAPPERS = ("_orig_mod.", "_fsdp_wrapped_module.", "_checkpoint_wrapped_module.")

# These return no tensor. Leaving them out early is only for speed: there are many.
_QUIET_METHODS = (
    "size", "dim", "stride", "numel", "nelement", "storage_offset", "is_floating_point",
    "is_complex", "is_contiguous", "element_size", "data_ptr", "__len__", "__repr__",
    "__format__", "__hash__", "untyped_storage", "is_inference", "is_conj", "is_neg",
    "get_device", "item", "tolist", "__bool__", "__int__", "__float__", "__index__")
_QUIET_GETTERS = ("shape", "dtype", "device", "is_cuda", "requires_grad", "ndim", "layout",
                  "grad_fn", "is_leaf", "is_sparse", "is_quantized", "itemsize", "nbytes",
                  "is_meta", "is_cpu", "is_mkldnn", "is_mps", "is_xpu", "_version", "names")


def _quiet() -> frozenset[Any]:
    found: set[Any] = set()
    for name in _QUIET_METHODS:
        if hasattr(torch.Tensor, name):
            found.add(getattr(torch.Tensor, name))
    for name in _QUIET_GETTERS:
        if hasattr(getattr(torch.Tensor, name, None), "__get__"):
            found.add(getattr(torch.Tensor, name).__get__)
    return frozenset(found)


class ModuleCall:
    """One call of a module, from its beginning to its end."""

    __slots__ = ("error", "id", "last_child", "module", "number", "parent", "path", "state")

    def __init__(self, path: str, module: torch.nn.Module, number: int,
                 parent: ModuleCall | None) -> None:
        self.path = path
        self.module = module
        self.number = number  # How often this module was called before.
        self.parent = parent
        self.last_child: ModuleCall | None = None  # The one that ended last.
        self.id = -1
        self.state: Any = None  # The handler's own.
        self.error: Any = None  # The exception that was being handled when the call began.

    @property
    def label(self) -> str:
        """"layers.0.mlp", or "layers.0.mlp@2" for its third call."""
        return self.path + (f"@{self.number}" if self.number else "")


class FunctionCall:
    """A function that has run."""

    __slots__ = ("args", "before", "kwargs", "name", "out", "written")

    def __init__(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.name = name
        self.args = args
        self.kwargs = kwargs
        self.written = writes_in_place(name, args, kwargs)  # What it wrote to in place, or None.
        self.before: Any = None  # What writing() returned.
        self.out: Any = None


class Handler:
    """What is done about each call. Nothing here is called while another of these runs."""

    def begin(self, call: ModuleCall, args: tuple[Any, ...],
              kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
        """A module is about to run; returns other arguments, or None to leave them."""

    def end(self, call: ModuleCall, out: Any, raised: bool) -> Any:
        """A module has run; returns another result, or None to leave it."""

    def writing(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A function is about to write in place; what is returned goes to function()."""

    def function(self, call: ModuleCall | None, done: FunctionCall) -> None:
        """A function has run, in the code of that module."""

    def failed(self, error: Exception) -> None:
        """Raised by one of the above; the run goes on."""
        raise error


def module_paths(model: torch.nn.Module) -> tuple[dict[torch.nn.Module, str],
                                                  dict[torch.nn.Module, list[str]]]:
    """Each module with its first path, and those with several with the others."""
    paths: dict[torch.nn.Module, str] = {}
    aliases: dict[torch.nn.Module, list[str]] = {}
    for path, module in named_modules(model):
        for word in _WRAPPERS:
            path = (path + ".").replace(word, "").rstrip(".")
        if module not in paths:
            paths[module] = path
        elif paths[module] != path:
            aliases.setdefault(module, []).append(path)
    return paths, aliases


# Before torch 2.1 hooks see neither keyword arguments nor exceptions.
_HOOKS_SEE_ALL = "always_call" in inspect.signature(
    torch.nn.Module.register_forward_hook).parameters


class _WrappedForward:
    """In the place of hooks: the module's own `forward` stands around that of its class."""

    def __init__(self, module: torch.nn.Module, begin: Callable[..., Any],
                 end: Callable[..., Any]) -> None:
        self._module = module
        self._before = vars(module).get("forward")
        self._set = not isinstance(module, torch.jit.ScriptModule)
        forward = module.forward

        @functools.wraps(forward)
        def watched(*args: Any, **kwargs: Any) -> Any:
            told = begin(module, args, kwargs)
            if told is not None:
                args, kwargs = told
            try:
                out = forward(*args, **kwargs)
            except BaseException:
                end(module, args, kwargs, None)
                raise
            told = end(module, args, kwargs, out)
            return out if told is None else told

        if self._set:
            vars(module)["forward"] = watched

    def remove(self) -> None:
        if self._set and self._before is None:
            del vars(self._module)["forward"]
        elif self._set:
            vars(self._module)["forward"] = self._before


class Observer:
    """Tells a handler of all calls in a model while it is entered, in the entering thread."""

    def __init__(self, model: torch.nn.Module, handler: Handler, ops: Ops = "functions") -> None:
        self.model = model
        self.handler = handler
        self.paths, self.aliases = module_paths(model)
        self.stack: list[ModuleCall] = []
        self.busy = False
        self._ops = ops
        self._counts: dict[torch.nn.Module, int] = {}
        self._exit = contextlib.ExitStack()
        self._thread = 0

    def __enter__(self) -> Observer:
        self._thread = threading.get_ident()
        self._exit = contextlib.ExitStack()
        with contextlib.ExitStack() as undo:
            for module in self.paths:
                for handle in self._hook(module):
                    undo.callback(handle.remove)
            if self._ops == "functions":
                undo.enter_context(_FunctionMode(self))
            elif self._ops == "aten":
                undo.enter_context(_DispatchMode(self))
            self._exit = undo.pop_all()
        return self

    def __exit__(self, *error: Any) -> None:
        self._exit.close()
        while self.stack:  # Only after an exception that hooks do not see, as KeyboardInterrupt.
            self._tell(self.handler.end, self.stack.pop(), None, True)

    @property
    def current(self) -> ModuleCall | None:
        return self.stack[-1] if self.stack else None

    def _hook(self, module: torch.nn.Module) -> Iterator[Any]:
        if not _HOOKS_SEE_ALL:
            yield _WrappedForward(module, self._begin, self._end)
            return
        yield module.register_forward_pre_hook(self._begin, with_kwargs=True)
        yield module.register_forward_hook(self._end, with_kwargs=True, always_call=True)

    def _tell(self, what: Callable[..., Any], *args: Any) -> Any:
        self.busy = True
        try:
            with internals.DisableTorchFunction():  # Our own calls do not come back here.
                return what(*args)
        except Exception as error:
            self.handler.failed(error)
        finally:
            self.busy = False

    def _elsewhere(self) -> bool:
        return self.busy or threading.get_ident() != self._thread

    def _begin(self, module: torch.nn.Module, args: Any, kwargs: Any) -> Any:
        if self._elsewhere():
            return None
        number = self._counts.get(module, 0)
        self._counts[module] = number + 1
        call = ModuleCall(self.paths[module], module, number, self.current)
        call.error = sys.exc_info()[1]
        self.stack.append(call)
        return self._tell(self.handler.begin, call, args, kwargs)

    def _end(self, module: torch.nn.Module, args: Any, kwargs: Any, out: Any) -> Any:
        # After an exception before the call began, there is nothing to end.
        if self._elsewhere() or not any(call.module is module for call in self.stack):
            return None
        error = sys.exc_info()[1]
        while True:
            call = self.stack.pop()
            raised = call.module is not module or error is not call.error
            call.error = None
            told = self._tell(self.handler.end, call, out if not raised else None, raised)
            if self.stack:
                self.stack[-1].last_child = call
            if call.module is module:
                return None if raised else told

    def function(self, func: Any, args: Any, kwargs: Any) -> Any:
        if self._elsewhere():
            return func(*args, **kwargs)
        call = FunctionCall(function_name(func), args, kwargs)
        if call.written is not None:
            call.before = self._tell(self.handler.writing, args, kwargs)
        out = func(*args, **kwargs)
        call.out = call.written if out is None else out
        self._tell(self.handler.function, self.current, call)
        return out


class _FunctionMode(TorchFunctionMode):
    quiet = _quiet()

    def __init__(self, observer: Observer) -> None:
        super().__init__()
        self.observer = observer

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if self.observer.busy or func in self.quiet:
            return func(*args, **(kwargs or {}))
        return self.observer.function(func, args, kwargs or {})


class _DispatchMode(TorchDispatchMode):
    def __init__(self, observer: Observer) -> None:
        base: Any = super()
        base.__init__()
        self.observer = observer

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return self.observer.function(func, args, kwargs or {})


def function_name(func: Any) -> str:
    """"softmax", "add", "__getitem__", "T"; of aten "add", without its overload."""
    packet = getattr(func, "overloadpacket", None)
    if packet is not None:
        return str(packet.__name__)
    name = getattr(func, "__name__", type(func).__name__)
    if name == "__get__":  # Of a property that makes a tensor, as .T or .real.
        return getattr(func.__self__, "__name__", name)
    return str(name)


_IN_PLACE = frozenset(("__setitem__", "__iadd__", "__isub__", "__imul__", "__itruediv__",
                       "__ifloordiv__", "__imod__", "__ipow__", "__iand__", "__ior__", "__ixor__",
                       "__ilshift__", "__irshift__"))


def writes_in_place(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The tensor that a function writes to, by its name; None where it makes a new one."""
    if kwargs.get("out") is not None:
        return kwargs["out"]
    marked = name in _IN_PLACE or name.endswith("_") and not name.endswith("__")
    if marked or kwargs.get("inplace"):
        return args[0] if args else next(iter(kwargs.values()), None)
    return None
