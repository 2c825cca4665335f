"""The plan's section `platform`: what a result holds for, and what G1 and the engine that ran are held against."""

# ruff: noqa: RUF009 - `of` and `section` are dataclasses.field with a specification
from __future__ import annotations

from dataclasses import dataclass

from gates.schema import Choice, Maybe, Section, Whole, Words, later, of, section


@dataclass(frozen=True)
class Layout:
    """How the model is laid out over accelerators."""

    tp: int = of(Whole(1, 1024))
    ep: int = of(Whole(1, 1024))
    instances: int = of(Whole(1, 1024))


@dataclass(frozen=True)
class Cpu:
    """The processors of an engine host."""

    model: str = of(Words())
    sockets: int = of(Whole(1, 64))
    cores: int = of(Whole(1, 4096))  # of each


@dataclass(frozen=True)
class Partition:
    """How each GPU of an engine host is divided (amd-smi partition)."""

    compute: str = of(Choice(("SPX", "DPX", "TPX", "QPX", "CPX")))
    memory: str = of(Choice(("NPS1", "NPS2", "NPS4", "NPS8")))


@dataclass(frozen=True)
class Platform:
    """What the result holds for: no other platform."""

    accelerator: str | None = of(Maybe(Words()))
    count: int = of(Whole(1, 4096))
    framework: str | None = of(Maybe(Words()))
    model: str | None = of(Maybe(Words()))
    model_config_sha256: str | None = of(Maybe(Words(r"[0-9a-f]{64}", "64 hexadecimal digits", "64 位十六进制数")))
    layout: Layout = section(Layout)
    cpu: Cpu | None = later(Maybe(Section(Cpu)), None)
    partition: Partition | None = later(Maybe(Section(Partition)), None)
