"""`quadgate reference check`: the published reference figures held against themselves."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from app.commands.language import Language
from app.kit.i18n import N_
from app.kit.terminal import say
from gates.reference.published import derived, findings, load
from gates.text import Text

AGREE = Text(
    "{n} stated figures follow from their raw figures; {k} findings. A figure holds for its own platform, model and framework only.",
    "{n} 个公布数值与其原始数值相符；发现 {k} 处问题。数值只适用于其自身的平台、模型和框架。",
)


def register(app: typer.Typer) -> None:
    """Add the group `reference`."""
    group = typer.Typer(no_args_is_help=True, help=N_("Published reference figures."))

    @group.callback()
    def _group() -> None:
        """Keep `reference` a group while it has one command only."""

    group.command(
        "check",
        help=N_("Recompute the published figures from their raw ones and print where they contradict themselves. Exit 0: findings are no verdict."),
    )(check)
    app.add_typer(group, name="reference")


def check(
    as_json: Annotated[bool, typer.Option("--json", help=N_("Print JSON."))] = False,
    *,
    language: Language,
) -> None:
    """Print the findings."""
    data = load()
    figures, found = derived(data), findings(data)
    if as_json:
        stated = [
            {
                "report": f.report,
                "what": f.what,
                "name": f.name,
                "stated": str(f.stated),
                "recomputed": f"{float(f.recomputed):.6f}",
                "agrees": f.agrees,
            }
            for f in figures
        ]
        print(json.dumps({"figures": stated, "findings": [f.json() for f in found]}, ensure_ascii=False, indent=2))
        return
    for finding in found:
        say(f"{finding.code:<24} {finding.report}: {finding.message.in_language(language)}")
    say("")
    say(AGREE.fill(n=sum(f.agrees for f in figures), k=len(found)).in_language(language))
