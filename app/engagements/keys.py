"""Maps of an engagement file: fixed keys, names that a person chose, and kinds that decide which keys there are. Values are read by gates.schema."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gates.schema import BAD, Choice, Problems, Spec, Words, join


@dataclass(frozen=True)
class Keys:
    """A map with fixed keys, some of them optional; optional ones stay absent."""

    required: Mapping[str, Spec]
    optional: Mapping[str, Spec] = field(default_factory=dict)

    def read(self, value: Any, path: str, problems: Problems) -> Any:
        """Return the plain map, or BAD after adding a sentence for each problem."""
        known = {**self.required, **self.optional}
        listed = ", ".join(known)
        if not isinstance(value, Mapping):
            return problems.expected(path, value, f"a map with {listed}", f"映射：{listed}")
        for key in value:
            if key not in known:
                problems.unknown(path, str(key), known)
        for key in self.required:
            if key not in value:
                problems.add(join(path, key), "this key is missing.", "缺少此键。")
        read = {str(key): known[key].read(item, join(path, str(key)), problems) for key, item in value.items() if key in known}
        return BAD if BAD in read.values() or not self.required.keys() <= read.keys() else read

    def write(self, value: Any) -> Any:
        """Return the plain form."""
        return value


@dataclass(frozen=True)
class Named:
    """A map from names to entries of one kind."""

    name: Words
    entry: Spec
    least: int = 1

    def read(self, value: Any, path: str, problems: Problems) -> Any:
        """Return the plain map, or BAD after adding a sentence for each problem."""
        if not isinstance(value, Mapping) or len(value) < self.least:
            return problems.expected(path, value, f"a map with at least {self.least} entries", f"至少 {self.least} 项的映射")
        read = {}
        for key, item in value.items():
            name = self.name.read(str(key), path, problems)
            read[str(key)] = BAD if name is BAD else self.entry.read(item, join(path, str(key)), problems)
        return BAD if BAD in read.values() else read

    def write(self, value: Any) -> Any:
        """Return the plain form."""
        return value


@dataclass(frozen=True)
class ByKind:
    """A map whose key `kind` says which other keys it has. A key of another kind is told as that, and not as a typing error."""

    kinds: Mapping[str, Keys]

    def read(self, value: Any, path: str, problems: Problems) -> Any:
        """Return the plain map, or BAD after adding a sentence for each problem."""
        if not isinstance(value, Mapping):
            return problems.expected(path, value, f"a map with kind ({' | '.join(self.kinds)})", f"含 kind（{' | '.join(self.kinds)}）的映射")
        if "kind" not in value:
            return problems.add(join(path, "kind"), "this key is missing.", "缺少此键。")
        kind = Choice(tuple(self.kinds)).read(value["kind"], join(path, "kind"), problems)
        if kind is BAD:
            return BAD
        read = self.kinds[kind].read({key: item for key, item in value.items() if key != "kind"}, path, problems)
        return BAD if read is BAD else {"kind": kind, **read}

    def write(self, value: Any) -> Any:
        """Return the plain form."""
        return value
