"""Every benchmark client, declared once: how its files are known, how it defines its figures, and what such a file cannot prove.

The registry of readers, the detection of a tool from a file, `quadgate compare` and docs/importing-results.md are all made from this table.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from gates.readers.common import part
from gates.text import Text

# Claims that no result file of any client can prove: they are about the engine, the caches, the device and the other arms.
NEVER_PROVEN = (
    "hbm_cold",
    "page_cache_cold",
    "engine_restarted_cold",
    "array_cold",
    "on_its_medium",
    "external_hits",
    "device_bytes",
    "store_complete",
    "equal_work",
    "client_healthy",
    "calibration",
    "littles_law",
    "output_identity",
    "gain_explained",
    "placebo",
    "replay",
    "baselines_agree",
    "g2_agreement",
)
# What a client itself leaves open, beyond the claims of the main gate (whose titles stand in gates/rules/claim.py).
OWN_TITLES: MappingProxyType[str, Text] = MappingProxyType(
    {
        "failures": Text("Every request succeeded", "请求全部成功"),
        "first_token": Text("TTFT is the first chunk with text", "TTFT 取首个含文本的数据块"),
        "monotonic_clock": Text("Times are from a monotonic clock", "时间取自单调时钟"),
        "server_tokens": Text("Tokens are counted by the server", "词元由服务端计数"),
        "request_values": Text("TTFT of each request is in the file", "文件含逐请求 TTFT"),
    }
)


@dataclass(frozen=True)
class Client:
    """One benchmark client."""

    name: str
    where: str  # module:function below gates.readers
    reads: Text
    studied: str  # the version whose files and source the reader was made from
    known_by: Callable[[Any], bool]  # given the first JSON value of a file
    ttft: Text
    failures: Text
    own: tuple[str, ...]  # keys of OWN_TITLES that it leaves open
    csv_head: str = ""

    @property
    def cannot_prove(self) -> tuple[str, ...]:
        """Return the claims that a file of this client cannot prove."""
        return (*NEVER_PROVEN, *self.own)


def _has(*keys: str, without: tuple[str, ...] = ()) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, dict) and all(k in value for k in keys) and not any(k in value for k in without)


def _aiperf(value: Any) -> bool:
    return _has("aiperf_version")(value) or (part(value, "metadata", "x_request_id") is not None and "metrics" in value)


def _guidellm(value: Any) -> bool:
    return part(value, "metadata", "guidellm_version") is not None and "benchmarks" in value


def _lmcache(value: Any) -> bool:
    return part(value, "results", "total_requests") is not None and part(value, "results", "elapsed_time") is not None


def _inferencex(value: Any) -> bool:
    return _has("num_prompts", "completed", "benchmark_start_time_unix")(value) or _has("tput_per_gpu", "conc")(value)


_LISTED = (
    Client(
        "aiperf",
        "bench.aiperf:read_aiperf",
        Text("AIPerf profile_export_aiperf.json or profile_export.jsonl", "AIPerf 的 profile_export_aiperf.json 或 profile_export.jsonl"),
        "0.13.0, schema 1.4",
        _aiperf,
        Text("first response with parsed content; reasoning counts", "首个解析出内容的响应，含推理内容"),
        Text("counted apart; errors inside a stream are failures", "单独计数；流内报错计为失败"),
        ("server_tokens",),
    ),
    Client(
        "guidellm",
        "bench.guidellm:read_guidellm",
        Text("GuideLLM benchmarks.json", "GuideLLM 的 benchmarks.json"),
        "0.8.1, metadata version 2",
        _guidellm,
        Text(
            "first line with content; p50 taken from the rows, since its own percentiles are nearest-rank",
            "首个含内容的行；其百分位为最近秩法，故 p50 由明细计算",
        ),
        Text("counted apart as errored or incomplete", "单独计为 errored 或 incomplete"),
        ("monotonic_clock",),
    ),
    Client(
        "inference-perf",
        "bench.inference_perf:read_inference_perf",
        Text("inference-perf lifecycle report (stage or summary)", "inference-perf 的 lifecycle 报告（阶段或汇总）"),
        "source of 7de5ef2",
        _has("load_summary", "successes", "failures"),
        Text(
            "first chunk with content; answers of fewer than two chunks are left out without a count",
            "首个含内容的数据块；不足两块的应答被剔除且不计数",
        ),
        Text("counted; a stream that holds only an error is a success", "有计数；只含错误的流被计为成功"),
        ("failures", "request_values", "server_tokens"),
    ),
    Client(
        "inferencex",
        "bench.vllm:read_inferencex",
        Text("InferenceX (InferenceMAX) client result", "InferenceX（InferenceMAX）客户端结果"),
        "843c625",
        _inferencex,
        Text("first chunk with a choice: on chat endpoints the role chunk", "首个含 choices 的数据块：chat 接口下即角色块"),
        Text("not counted; told from num_prompts, completed and lengths of 0", "不计数；由 num_prompts、completed 与长度 0 推知"),
        ("failures", "first_token", "request_values"),
    ),
    Client(
        "lmcache-bench",
        "bench.lmcache:read_lmcache_bench",
        Text("lmcache bench engine: bench_summary.json or bench_results.csv", "lmcache bench engine 的 bench_summary.json 或 bench_results.csv"),
        "0.5.6",
        _lmcache,
        Text("first chunk with content", "首个含内容的数据块"),
        Text("counted; TTFT -1 in the CSV", "有计数；CSV 中 TTFT 为 -1"),
        ("monotonic_clock",),
        csv_head="request_id,successful,ttft,",
    ),
    Client(
        "long-doc-qa",
        "bench.lmcache:read_long_doc_qa",
        Text("LMCache long_doc_qa.py result", "LMCache long_doc_qa.py 的结果"),
        "2026-05-15",
        _has("query_ttft_per_prompt"),
        Text("mean only; a request without output enters as 0 s", "仅有均值；无输出的请求按 0 秒计入"),
        Text("not counted", "不计数"),
        ("failures", "monotonic_clock", "request_values"),
    ),
    Client(
        "sglang-bench",
        "bench.sglang:read_sglang_bench",
        Text("SGLang bench_serving result line", "SGLang bench_serving 的结果行"),
        "0.5.23",
        _has("total_output_tokens_retokenized", "backend", "completed"),
        Text("first chunk with text", "首个含文本的数据块"),
        Text(
            "HTTP errors are told from the rows; an error inside a stream is a success with TTFT 0 and full credit of tokens",
            "HTTP 错误由明细推知；流内报错被计为成功，TTFT 为 0 且按请求长度计入词元",
        ),
        ("failures", "server_tokens"),
    ),
    Client(
        "vllm-bench",
        "bench.vllm:read_vllm_bench",
        Text("vllm bench serve --save-result [--save-detailed]", "vllm bench serve --save-result [--save-detailed]"),
        "0.33.0",
        _has("num_prompts", "completed", "endpoint_type", without=("benchmark_start_time_unix",)),
        Text(
            "first chunk with a choice; on chat endpoints since 0.33 with content, before it the role chunk",
            "首个含 choices 的数据块；chat 接口自 0.33 起须含内容，此前可为角色块",
        ),
        Text("counted; rows stay in the lists as zeros", "有计数；失败请求在明细中为零"),
        ("first_token",),
    ),
)
CLIENTS: MappingProxyType[str, Client] = MappingProxyType({client.name: client for client in _LISTED})
