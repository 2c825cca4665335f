"""`quadgate demo`: a whole engagement on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from app.commands.help import filled
from app.commands.language import not_one_of, of_terminal
from app.demo.options import ENGINES, FAULTS, DemoOptions, check_faults, parse_fault
from app.demo.progress import closing_table, judge_again
from app.demo.run import GATES, run_demo
from app.kit.errors import BadInput
from app.kit.i18n import N_

HELP = N_("Run one engagement from G1 to G4 with progress, ending in a table. Exit 0 when it ran as meant, whatever the verdicts.")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("demo", help=HELP)(demo)


def demo(
    engine: Annotated[str, typer.Option(help=filled(N_("What is measured: one of {engines}."), engines=", ".join(ENGINES)))] = "sim",
    soak: Annotated[int, typer.Option(min=0, help=N_("Seconds that the 72 h of G4 really take; 0 is what the engagement file says."))] = 0,
    seed: Annotated[int, typer.Option(help=N_("Seed of plan and prompts."))] = 1,
    fault: Annotated[list[str] | None, typer.Option(help=filled(N_("NAME[=STRENGTH], may be repeated: {faults}."), faults=" ".join(FAULTS)))] = None,
    out: Annotated[Path, typer.Option(help=N_("Folder for summary.json, reports and bundles."))] = Path("out/demo"),
    engagement: Annotated[Path | None, typer.Option(exists=True, dir_okay=False, help=N_("Another engagement file than the shipped one."))] = None,
    until: Annotated[str, typer.Option(help=N_("The last gate to start: G1, G2, G3 or G4."))] = "G4",
    web: Annotated[bool, typer.Option(help=N_("Serve the web pages while the demo runs."))] = False,
) -> None:
    """Run it; 65 where an attempt ended in an error."""
    if engine not in ENGINES:
        raise not_one_of(engine, ENGINES, "--engine")
    if until not in GATES:
        raise not_one_of(until, GATES, "--until")
    try:
        faults = dict(parse_fault(text) for text in fault or [])
        check_faults(faults, simulated_engine=engine == "sim")
    except BadInput as error:
        raise typer.BadParameter(error.text(of_terminal()), param_hint="--fault") from None
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
    if again := judge_again(summary, out):
        console.print(f"judge again 重新判定    {again}", soft_wrap=True)
    if any(gate["run_status"] == "error" for gate in summary["gates"].values()):
        raise typer.Exit(65)
