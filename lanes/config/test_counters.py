"""The counters that the judgement asks for are those that the pinned releases export, by name and label, and an engine's words are its own."""

from __future__ import annotations

import re
import subprocess

import pytest

from gates.engine_counters import FACTS, LEDGER, NO_SETTING, RESET_WORDS, SERIES, STORE_FAILURES
from lanes.config.test_rendered_config import PARSERS, ROOT

PLACES = {
    "vllm": ("vllm/v1/metrics", "vllm/distributed/kv_transfer/kv_connector/v1", "vllm/v1/kv_offload"),
    "sglang": ("sglang/srt/observability/metrics_collector.py",),
}
RANKS = ("0",)  # of a label, told by the process itself
OF_NO_RELEASE = ("vllm:kv_offload_load_failures_total",)  # only the simulated engine has it; of vLLM hits, failures and outputs tell instead


@pytest.fixture(scope="module")
def sources() -> dict[str, str]:
    subprocess.run([str(ROOT / "tools" / "parsers.sh")], check=True, timeout=1200)
    found = {}
    for engine, places in PLACES.items():
        roots = [PARSERS / "src" / place for place in places]
        files = [file for root in roots for file in (sorted(root.rglob("*.py")) if root.is_dir() else [root])]
        found[engine] = "\n".join(file.read_text(encoding="utf-8") for file in files)
    return found


def stands(text: str, word: str) -> bool:
    return re.search(rf"""["']{re.escape(word)}["']""", text) is not None


@pytest.mark.parametrize("engine", SERIES)
def test_every_series_and_label_that_is_asked_for_stands_in_the_release(engine: str, sources: dict[str, str]) -> None:
    asked = {(name, label, value) for series in SERIES[engine].values() for name, labels in series for label, value in (labels or {"": ""}).items()}
    asked |= {(name, label, "") for name, label in FACTS[engine].values()}
    for name, _label, value in asked:
        known = stands(sources[engine], name) or stands(sources[engine], name.removesuffix("_total"))
        assert known is (name not in OF_NO_RELEASE), name
        assert value in (*RANKS, "") or stands(sources[engine], value), (name, value)


def test_a_name_that_no_release_has_is_found(sources: dict[str, str]) -> None:
    assert not stands(sources["sglang"], "sglang:prefill_tokens_total")
    assert not stands(sources["vllm"], "vllm:prompt_tokens_by_origin")


def test_the_parts_of_sglang_s_ledger_are_all_that_it_counts(sources: dict[str, str]) -> None:
    seeded = re.search(r'for mode in \(((?:"\w+",? ?)+)\):', sources["sglang"])
    assert seeded is not None
    own = {labels["mode"] for part in LEDGER for _, labels in SERIES["sglang"][part]}
    assert own == set(re.findall(r'"(\w+)"', seeded[1]))


def test_the_words_of_sglang_are_still_its_own(sources: dict[str, str]) -> None:
    server = (PARSERS / "src/sglang/srt/entrypoints/http_server.py").read_text(encoding="utf-8")
    assert f'"{RESET_WORDS["sglang"]}\\n' in server
    assert '"/flush_cache"' in server
    fields = re.findall(r'^    "(\w+)",', (PARSERS / "src/sglang/srt/arg_groups/field_order.py").read_text(encoding="utf-8"), re.MULTILINE)
    secrets = [name for name in fields if re.search(r"api_key|password|secret|watermark_key|keyfile", name)]
    assert secrets
    assert all(re.fullmatch(NO_SETTING["sglang"], name) for name in secrets)
    assert not re.fullmatch(NO_SETTING["sglang"], "page_size")
    assert any(part in sources["sglang"] for part in STORE_FAILURES)
