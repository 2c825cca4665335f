"""What a demo is asked to do, and the engagement file that follows from it."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

import yaml

from app.engagements.file import read_file
from app.kit.errors import BadInput
from app.kit.i18n import N_
from app.settings import ROOT
from gates.canonical import decimal_text
from gates.plan import load_yaml

HERE = Path(__file__).parent
SOAK_SECONDS = Decimal(72 * 3600)

# DESIGN section 8 names them. `worker-kill` happens to the controller; all others happen on the simulated targets.
FAULTS = (
    "missing-drive",
    "swapped-drive",
    "slow-tier",
    "warm-cache",
    "warm-array-cache",
    "unequal-work",
    "lost-kv",
    "corrupt-kv",
    "silent-errors",
    "drift",
    "leak",
    "engine-crash",
    "worker-kill",
)
ENGINES = ("sim", "vllm-cpu")
# What happens beside the engine, to the simulated rack or to the controller. All others are in the simulated engine: no other one takes a fault.
BESIDE_THE_ENGINE = ("missing-drive", "swapped-drive", "worker-kill")


@dataclass(frozen=True)
class DemoOptions:
    """A demo: which engine, how long the soak really lasts (seconds), the seed, and the faults with their strengths."""

    out: Path
    engine: str = "sim"
    soak: int = 0  # seconds; 0 leaves what the engagement file says
    seed: int = 1
    faults: dict[str, Decimal] = field(default_factory=dict)
    engagement: Path | None = None  # another engagement file than the shipped one
    web: bool = False
    until: str = "G4"  # the last gate that is started

    @property
    def worker_kill(self) -> bool:
        """Tell whether worker and playbook host are to be killed during G3 and G4."""
        return self.faults.get("worker-kill", Decimal(0)) > 0


def parse_fault(text: str) -> tuple[str, Decimal]:
    """Read NAME[=STRENGTH]; a name alone has strength 1, and 0 means no fault."""
    name, _, strength = text.partition("=")
    if name not in FAULTS:
        raise BadInput("unknown_fault", N_("There is no fault {name}; the faults are: {names}."), name=name, names=", ".join(FAULTS))
    try:
        value = Decimal(strength or "1")
    except InvalidOperation:
        value = Decimal(-1)
    if not (value.is_finite() and 0 <= value <= 10):
        raise BadInput("bad_strength", N_("The strength of {name} must be a number from 0 to 10, not {value}."), name=name, value=strength)
    return name, value


def check_faults(faults: dict[str, Decimal], *, simulated_engine: bool) -> None:
    """Raise BadInput that names the first fault that an engine cannot have: only the simulated engine has any. Strength 0 is none."""
    for name, strength in faults.items():
        if strength > 0 and not simulated_engine and name not in BESIDE_THE_ENGINE:
            raise BadInput(
                "no_such_fault_there",
                N_("The fault {name} is one of the simulated engine, and another engine is to be measured. With that one there are: {names}."),
                name=name,
                names=", ".join(BESIDE_THE_ENGINE),
            )


def engagement_text(options: DemoOptions) -> str:
    """Return the engagement file of this demo as YAML: the shipped one with seed, soak and faults put in.

    Raises BadInput with a sentence for each problem of a file of the person's own: before anything is started.
    """
    source = options.engagement or HERE / ("engagement.yaml" if options.engine == "sim" else "engagement-vllm-cpu.yaml")
    try:
        text = source.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise BadInput("not_utf8", N_("The engagement file is not UTF-8 text.")) from None
    if not read_file(text).targets["simulated"]:
        raise BadInput(
            "demo_of_real_targets",
            N_(
                "A demo acts for both parties, approvals and signatures included, so it runs on simulated targets only. "
                "{file} says simulated: false; run this engagement with quadgate up."
            ),
            file=str(source),
        )
    document: dict[str, Any] = load_yaml(text)
    engine = document["targets"]["engine"]
    check_faults(options.faults, simulated_engine=engine.get("kind") == "lab")
    # A venv and a model given by relative paths lie below the checkout.
    engine.update({key: str(ROOT / engine[key]) for key in ("venv", "model_dir") if key in engine})
    _part(document, "plan", "decision")["seed"] = options.seed
    if options.soak:
        _part(document, "plan", "rig")["time_scale"] = _exact(SOAK_SECONDS / options.soak)
    target_faults = {name: str(strength) for name, strength in options.faults.items() if name != "worker-kill"}
    if target_faults:
        document["targets"]["faults"] = target_faults
    if "warm-array-cache" in target_faults:
        # Only a plan that asks for a cold array says anything about the array's cache.
        _part(document, "plan", "arms")["array_cache"] = "cold"
    return dumped(document)


def dumped(document: dict[str, Any]) -> str:
    """Return an engagement file's text; exact decimals stay as they are."""
    return yaml.dump(document, Dumper=_Dumper, allow_unicode=True, sort_keys=False)


class _Dumper(yaml.SafeDumper):
    """Writes exact decimals as they are."""


def _decimal(dumper: yaml.SafeDumper, value: Decimal) -> yaml.ScalarNode:
    text = decimal_text(value)
    return dumper.represent_scalar("tag:yaml.org,2002:float" if "." in text else "tag:yaml.org,2002:int", text)


_Dumper.add_representer(Decimal, _decimal)


def _part(document: dict[str, Any], *path: str) -> dict[str, Any]:
    """Return a map of a document, made where it is missing or null."""
    for key in path:
        document[key] = document.get(key) or {}
        document = document[key]
    return document


def _exact(value: Decimal) -> str:
    """Return a plain decimal text without trailing zeros."""
    text = format(value.quantize(Decimal("0.000001")), "f")
    return text.rstrip("0").rstrip(".") if "." in text else text
