"""Stand-ins for what the engines compute with (torch, triton, transformers, native code), so that their real parsers can be imported without it.

Only modules that are not installed are replaced, and a few of the engines' own that compute and do not parse. What parses is the release's own code.
"""

from __future__ import annotations

import abc
import importlib.abc
import importlib.machinery
import sys
import types
import typing
from typing import Any

OWN = ("vllm", "lmcache", "sglang")
NATIVE = ("_C", "_c", "lmcache_native", "c_ops")  # compiled parts of the engines
COMPUTING = (
    "vllm.ir",
    "vllm.kernels",
    "sglang.kernels",
    "sglang.srt.configs",
    "sglang.srt.mem_cache.pool_host",
    "sglang.srt.mem_cache.hybrid_cache",
    "sglang.srt.utils.hf_transformers_patches",
    "lmcache.v1.mp_observability.subscribers",
)
ABSENT = ("opentelemetry", "torch_npu", "torch_musa", "torch_xla", "torch_mlu", "habana_frameworks")  # found missing by the engines' own fallbacks
NO_DEVICE = ("npu", "hpu", "musa")


class Meta(abc.ABCMeta):
    """A class that answers every question about itself with another such class."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        value = make(name)
        setattr(cls, name, value)
        return value

    def __call__(cls, *args: Any, **named: Any) -> Any:
        decorates = len(args) == 1 and not named and callable(args[0])
        return args[0] if decorates else abc.ABCMeta.__call__(cls)

    def __or__(cls, other: Any) -> Any:  # type: ignore[override]
        return typing.Union[cls, other]  # noqa: UP007 - `|` would call this method again

    def __ror__(cls, other: Any) -> Any:  # type: ignore[override]
        return typing.Union[other, cls]  # noqa: UP007

    def __iter__(cls) -> Any:
        return iter(())

    def __getitem__(cls, key: Any) -> Any:
        return cls

    def __setitem__(cls, key: Any, value: Any) -> None:
        return None

    def __int__(cls) -> int:
        return 0

    __index__ = __int__

    def __lt__(cls, other: Any) -> bool:
        return False

    __gt__ = __le__ = __ge__ = __lt__


def make(name: str) -> Any:
    """Return a stand-in for a class, a function or a value."""

    def attribute(_: Any, wanted: str) -> Any:
        if wanted.startswith("__"):
            raise AttributeError(wanted)
        return make(wanted)

    def call(self: Any, *args: Any, **named: Any) -> Any:
        return args[0] if len(args) == 1 and not named and callable(args[0]) else self

    def schema(cls: Any, *args: Any, **named: Any) -> Any:
        from pydantic_core import core_schema

        return core_schema.any_schema()

    body: dict[str, Any] = {
        "__init__": lambda self, *args, **named: None,
        "__getattr__": attribute,
        "__call__": call,
        "__class_getitem__": classmethod(lambda cls, key: cls),
        "__get_pydantic_core_schema__": classmethod(schema),
        "__enter__": lambda self: self,
        "__exit__": lambda self, *args: None,
        "__iter__": lambda self: iter(()),
        "__bool__": lambda self: False,
        "__len__": lambda self: 0,
        "__int__": lambda self: 0,
        "__index__": lambda self: 0,
        "__add__": lambda self, other: other,
        "__radd__": lambda self, other: other,
        "__or__": lambda self, other: self,
        "__and__": lambda self, other: self,
        "__setitem__": lambda self, key, value: None,
        "__getitem__": lambda self, key: self,
        "__eq__": lambda self, other: type(self).__name__ == type(other).__name__,
        "__hash__": lambda self: 1,
        **dict.fromkeys(("__lt__", "__gt__", "__le__", "__ge__"), lambda self, other: False),
    }
    return Meta(name, (), body)


class Module(types.ModuleType):
    """A module whose every name is a stand-in."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name in NO_DEVICE:
            raise AttributeError(name)
        value = make(name)
        setattr(self, name, value)
        return value


class Loader(importlib.abc.Loader):
    """Makes the stand-in modules."""

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        """Return the module, a package, so that what lies below it is found too."""
        module = Module(spec.name)
        module.__path__ = []
        module.__version__ = "2.13.0"  # type: ignore[attr-defined]
        return module

    def exec_module(self, module: types.ModuleType) -> None:
        """Do nothing: there is nothing to run."""


class Computing(importlib.abc.MetaPathFinder):
    """Asked first: the engines' own modules that compute."""

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        """Return a stand-in for these, None for all others."""
        if any(name == known or name.startswith(f"{known}.") for known in COMPUTING):
            return importlib.machinery.ModuleSpec(name, Loader(), is_package=True)
        return None


class Missing(importlib.abc.MetaPathFinder):
    """Asked last: what nobody else found."""

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        """Return a stand-in for a missing package or a native part of an engine."""
        top = name.partition(".")[0]
        if top in sys.stdlib_module_names or top in ABSENT:
            return None
        if top in OWN and not name.endswith(NATIVE):
            return None  # a renamed module of an engine must be seen, not replaced
        if "." in name and top not in OWN and not isinstance(sys.modules.get(top), Module):
            return None  # a missing part of an installed package
        return importlib.machinery.ModuleSpec(name, Loader(), is_package=True)


def install() -> None:
    """Put the stand-ins in force for this process."""
    sys.meta_path.insert(0, Computing())
    sys.meta_path.append(Missing())
