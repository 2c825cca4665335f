"""`quadgate judge`: re-judge an evidence bundle offline, from plan and evidence alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from app.commands.language import Language, in_words
from app.kit.i18n import N_
from app.kit.terminal import padded, say
from gates.bundle import Bundle, Unreadable, read_bundle
from gates.canonical import canonical_bytes
from gates.judge import JUDGE_VERSION, RULES_HASH, differences
from gates.judge import judge as judge_bundle
from gates.text import Text

HELP = N_(
    "Re-judge an evidence bundle, offline.\n\n"
    "Exit 0 pass, 1 fail, 2 conditional, 3 inconclusive or invalid, 4 unreadable, tampered, or a stored verdict that differs."
)
EXIT = {"pass": 0, "fail": 1, "conditional": 2, "inconclusive": 3, "invalid": 3}
UNREADABLE = 4
REFUSED = Text("This bundle cannot be judged. ", "无法判定此证据包。")
OTHER_RULES = Text("the bundle was made under other rules; it is judged here by this judge's", "证据包是按其他规则生成的；此处按本判定程序的规则判定")
ATTEMPT = Text("{gate} number {n} ({id}), {files} files of evidence", "{gate} 第 {n} 次尝试（{id}），证据文件 {files} 个")
SIMULATED = Text("SIMULATED, NOT FOR SIGN-OFF", "模拟目标，不得用于签署")
MANIFEST, PLAN, JUDGE, TRY = (
    Text("manifest", "证据清单"),
    Text("plan", "计划"),
    Text("judge", "判定程序"),
    Text("attempt", "尝试"),
)
RULES = Text("rules {hash}", "规则 {hash}")
ADVISORY = Text("advisory", "参考项")
OF_ARM = Text("{claim} ({arm}): {reason}", "{claim}（{arm}）：{reason}")
COLON = Text(": ", "：")
NOT_TESTED = Text("not tested", "未测")
DIFFERS = Text(
    "The verdict stored in the bundle ({stored}) differs from this one in: {fields}. The bundle is not what was signed.",
    "证据包内保存的判定（{stored}）与此次判定不一致：{fields}。该证据包不是当初签署的内容。",
)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("judge", help=HELP)(judge)


def judge(
    bundle: Annotated[Path, typer.Argument(help=N_("Evidence bundle: a directory or a zip."))],
    expect_manifest: Annotated[
        str | None, typer.Option("--expect-manifest", metavar="HASH", help=N_("The manifest hash that the report prints."))
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help=N_("Print the verdict document as canonical JSON."))] = False,
    *,
    language: Language,
) -> None:
    """Re-judge it, and end with the verdict's code."""
    try:
        found = read_bundle(bundle, expect_manifest=expect_manifest)
        document = judge_bundle(found)
    except Unreadable as error:
        _refuse(error, language, as_json=as_json)
    differs = differences(found.stored_verdict, document, found.manifest) if found.stored_verdict is not None else []
    if as_json:
        extra = {"stored_verdict": "absent" if found.stored_verdict is None else "differs" if differs else "same", "differences": differs}
        typer.echo(canonical_bytes({**document, **extra}).decode())
    else:
        _print(found, document, differs, language)
    raise typer.Exit(UNREADABLE if differs else EXIT[document["verdict"]])


def _refuse(error: Unreadable, language: str, *, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps({"error": error.text.json()}, sort_keys=True))
    else:
        say(REFUSED.in_language(language) + error.text.in_language(language), err=True)
    raise typer.Exit(UNREADABLE)


def _print(bundle: Bundle, document: dict[str, Any], differs: list[str], language: str) -> None:
    attempt = document["attempt"]
    head(MANIFEST, document["manifest_hash"], language)
    head(PLAN, document["plan_hash"], language)
    head(JUDGE, f"{JUDGE_VERSION}  {RULES.fill(hash=RULES_HASH).in_language(language)}", language)
    if bundle.manifest["rules_hash"] != RULES_HASH:
        head(None, OTHER_RULES.in_language(language), language)
    counted = ATTEMPT.fill(gate=document["gate"], n=attempt["number"], id=attempt["id"], files=len(bundle.files))
    head(TRY, counted.in_language(language), language)
    if document["simulated"]:
        head(None, SIMULATED.in_language(language), language)
    say("")
    said: set[str] = set()
    for check in document["checks"]:
        advisory = f"  ({ADVISORY.in_language(language)})" if check["severity"] == "advisory" else ""
        say(f"{padded(in_words('verdict', check['verdict'], language), 13)} {check['id']}{advisory}")
        reason = check["reason"][language]
        if reason not in said:  # what keeps one check from being judged keeps many
            say(f"              {reason}")
        said.add(reason)
    broken = [c for c in document["claims"] if c["status"] in ("breached", "unknown")]
    if broken:
        say("")
    for claim in broken:
        status, arm = in_words("claim", claim["status"], language), in_words("arm", claim["arm"], language)
        line = OF_ARM.fill(claim=claim["claim"], arm=arm, reason=claim["reason"][language]).in_language(language)
        say(f"{padded(status, 13)} {line}")
    for item in document["not_tested"]:
        say(f"{padded(NOT_TESTED.in_language(language), 13)} {item['title'][language]}{COLON.in_language(language)}{item['reason'][language]}")
    say("")
    for line in (document["summary"]["en"], document["summary"]["zh-CN"], document["risk"][language]):
        say(line)
    if differs:
        stored = in_words("verdict", (bundle.stored_verdict or {}).get("verdict"), language)
        say(DIFFERS.fill(stored=stored, fields=", ".join(differs[:10])).in_language(language), err=True)


def head(name: Text | None, value: str, language: str) -> None:
    """Print one line of what a judgement is about."""
    say(f"{padded(name.in_language(language) if name else '', 9)} {value}")
