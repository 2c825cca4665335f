"""`quadgate demo`: a whole engagement on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from app.demo.options import ENGINES, FAULTS, DemoOptions, parse_fault
from app.demo.progress import closing_table
from app.demo.run import GATES, run_demo
from app.kit.errors import BadInput


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("demo")(demo)


def demo(
    engine: Annotated[str, typer.Option(help=f"What is measured: {' or '.join(ENGINES)}.")] = "sim",
    soak: Annotated[int, typer.Option(min=0, help="Seconds that the 72 h of G4 really take; 0 is what the engagement file says.")] = 0,
    seed: Annotated[int, typer.Option(help="Seed of plan and prompts.")] = 1,
    fault: Annotated[list[str] | None, typer.Option(help=f"NAME[=STRENGTH], may be repeated: {' '.join(FAULTS)}.")] = None,
    out: Annotated[Path, typer.Option(help="Folder for summary.json, reports and bundles.")] = Path("out/demo"),
    engagement: Annotated[Path | None, typer.Option(exists=True, dir_okay=False, help="Another engagement file than the shipped one.")] = None,
    until: Annotated[str, typer.Option(help="The last gate to start: G1, G2, G3 or G4.")] = "G4",
    web: Annotated[bool, typer.Option(help="Serve the web pages while the demo runs.")] = False,
) -> None:
    """Run one engagement from G1 to G4 with progress, ending in a table. Exit 0 when it ran as meant, whatever the verdicts."""
    if engine not in ENGINES:
        raise typer.BadParameter(f"{engine} is not one of {', '.join(ENGINES)}", param_hint="--engine")
    if until not in GATES:
        raise typer.BadParameter(f"{until} is not one of {', '.join(GATES)}", param_hint="--until")
    try:
        faults = dict(parse_fault(text) for text in fault or [])
    except BadInput as error:
        raise typer.BadParameter(error.text("en"), param_hint="--fault") from None
    options = DemoOptions(
        out=out,
        engine=engine,
        soak=soak,
        seed=seed,
        faults=faults,
        engagement=engagement,
        web=web,
        until=until,
    )
    console = Console()
    summary = run_demo(options, console)
    closing_table(console, summary, out)
    console.print(f"summary 汇总            {out / 'summary.json'}", soft_wrap=True)
    if any(gate["bundle"] for gate in summary["gates"].values()):
        console.print(f"judge again 重新判定    quadgate judge {out / 'bundles' / 'G1.zip'}", soft_wrap=True)
    if any(gate["run_status"] == "error" for gate in summary["gates"].values()):
        raise typer.Exit(65)
