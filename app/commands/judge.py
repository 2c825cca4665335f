"""`quadgate judge`: re-judge an evidence bundle offline, from plan and evidence alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from gates.bundle import Bundle, Unreadable, read_bundle
from gates.canonical import canonical_bytes
from gates.judge import JUDGE_VERSION, RULES_HASH, differences
from gates.judge import judge as judge_bundle

EXIT = {"pass": 0, "fail": 1, "conditional": 2, "inconclusive": 3, "invalid": 3}
UNREADABLE = 4


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("judge")(judge)


def judge(
    bundle: Annotated[Path, typer.Argument(help="Evidence bundle: a directory or a zip.")],
    expect_manifest: Annotated[
        str | None, typer.Option("--expect-manifest", metavar="HASH", help="The manifest hash that the report prints.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the verdict document as canonical JSON.")] = False,
) -> None:
    """Re-judge an evidence bundle, offline.

    Exit 0 pass, 1 fail, 2 conditional, 3 inconclusive or invalid, 4 unreadable, tampered, or a stored verdict that differs.
    """
    try:
        found = read_bundle(bundle, expect_manifest=expect_manifest)
        document = judge_bundle(found)
    except Unreadable as error:
        _refuse(error, as_json=as_json)
    differs = differences(found.stored_verdict, document) if found.stored_verdict is not None else []
    if as_json:
        extra = {"stored_verdict": "absent" if found.stored_verdict is None else "differs" if differs else "same", "differences": differs}
        typer.echo(canonical_bytes({**document, **extra}).decode())
    else:
        _print(found, document, differs)
    raise typer.Exit(UNREADABLE if differs else EXIT[document["verdict"]])


def _refuse(error: Unreadable, *, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps({"error": error.text.json()}, ensure_ascii=False, sort_keys=True))
    else:
        typer.echo(f"This bundle cannot be judged. {error.text.en}", err=True)
    raise typer.Exit(UNREADABLE)


def _print(bundle: Bundle, document: dict[str, Any], differs: list[str]) -> None:
    attempt = document["attempt"]
    typer.echo(f"manifest  {document['manifest_hash']}")
    typer.echo(f"plan      {document['plan_hash']}")
    typer.echo(f"judge     {JUDGE_VERSION}  rules {RULES_HASH}")
    if bundle.manifest["rules_hash"] != RULES_HASH:
        typer.echo("          the bundle was made under other rules; it is judged here by this judge's")
    typer.echo(f"attempt   {document['gate']} number {attempt['number']} ({attempt['id']}), {len(bundle.files)} files of evidence")
    if document["simulated"]:
        typer.echo("          SIMULATED, NOT FOR SIGN-OFF")
    typer.echo("")
    for check in document["checks"]:
        advisory = "  (advisory)" if check["severity"] == "advisory" else ""
        typer.echo(f"{check['verdict']:<13} {check['id']}{advisory}")
        typer.echo(f"              {check['reason']['en']}")
    broken = [c for c in document["claims"] if c["status"] in ("breached", "unknown")]
    if broken:
        typer.echo("")
    for claim in broken:
        typer.echo(f"{claim['status']:<13} {claim['claim']} ({claim['arm']}): {claim['reason']['en']}")
    for item in document["not_tested"]:
        typer.echo(f"not tested    {item['title']['en']}: {item['reason']['en']}")
    typer.echo("")
    typer.echo(document["summary"]["en"])
    typer.echo(document["summary"]["zh-CN"])
    typer.echo(document["risk"]["en"])
    if differs:
        stored = (bundle.stored_verdict or {}).get("verdict")
        typer.echo(
            f"The verdict stored in the bundle ({stored}) differs from this one in: {', '.join(differs[:10])}. The bundle is not what was signed.",
            err=True,
        )
