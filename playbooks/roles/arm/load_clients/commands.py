"""The command lines of AIPerf, GuideLLM and vLLM bench for one closed loop of prompts of one length, and the file that each writes.

They are those of the releases that `make bench-client` drives: AIPerf 0.13, GuideLLM 0.8, vLLM 0.32.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

FOLDER = "{folder}"  # the probe puts the folder of the pass there
# No model hub: its address leads nowhere. (With HF_HUB_OFFLINE=1 AIPerf 0.13 takes a tokenizer's path for a name.) And none takes an accelerator.
ENVIRONMENT = {"HF_ENDPOINT": "http://127.0.0.1:9", "HF_HUB_DISABLE_TELEMETRY": "1", "DO_NOT_TRACK": "1", "VLLM_TARGET_DEVICE": "cpu"}
_VLLM = "import argparse; from vllm.benchmarks.serve import add_cli_args, main; p = argparse.ArgumentParser(); add_cli_args(p); main(p.parse_args())"


@dataclass(frozen=True)
class Work:
    """One pass: where, of which model, how many requests at a time and in all, of which lengths, with whose tokenizer, into which folder."""

    base_url: str
    model: str
    concurrency: int
    requests: int
    prompt_tokens: int
    output_tokens: int
    tokenizer: str
    seed: int = 1
    folder: str = FOLDER


def describe(tool: str, program: str, work: Work) -> dict[str, Any]:
    """Return {argv, result} of a client: its command line, and its result below the folder (a name, looked for at any depth).

    `program`: the client's executable; of vllm-bench the Python of an environment that holds vLLM. Raises KeyError for a tool that is none of TOOLS.
    """
    argv, result = TOOLS[tool](program, work)
    return {"argv": argv, "result": result}


def _aiperf(program: str, work: Work) -> tuple[list[str], str]:
    options = {
        "--model": work.model,
        "--url": work.base_url,
        "--endpoint-type": "completions",
        "--tokenizer": work.tokenizer,
        "--concurrency": work.concurrency,
        "--request-count": work.requests,
        "--num-dataset-entries": work.requests,
        "--synthetic-input-tokens-mean": work.prompt_tokens,
        "--synthetic-input-tokens-stddev": 0,
        "--output-tokens-mean": work.output_tokens,
        "--output-tokens-stddev": 0,
        "--extra-inputs": "ignore_eos:true",
        "--output-artifact-dir": f"{work.folder}/aiperf",
        "--ui": "none",
        "--random-seed": work.seed,
    }
    flags = ["--streaming", "--use-server-token-count", "--no-gpu-telemetry", "--no-server-metrics"]
    return [program, "profile", *_flat(options), *flags], "profile_export_aiperf.json"


def _guidellm(program: str, work: Work) -> tuple[list[str], str]:
    options = {
        "--backend": f"kind=openai_http,target={work.base_url},model={work.model},request_format=/v1/completions",
        "--profile": f"kind=concurrent,streams={work.concurrency}",
        "--constraint": f"kind=max_requests,count={work.requests}",
        "--tokenizer": f"kind=huggingface_auto,model={work.tokenizer}",
        "--data": f"kind=synthetic_text,prompt_tokens={work.prompt_tokens},output_tokens={work.output_tokens}",
        "--output": f"kind=json,path={work.folder}/guidellm/benchmarks.json",
    }
    return [program, "run", *_flat(options), "--disable-console"], "benchmarks.json"


def _vllm_bench(program: str, work: Work) -> tuple[list[str], str]:
    options = {
        "--backend": "openai",
        "--base-url": work.base_url,
        "--endpoint": "/v1/completions",
        "--model": work.model,
        "--tokenizer": work.tokenizer,
        "--dataset-name": "random",
        "--random-input-len": work.prompt_tokens,
        "--random-output-len": work.output_tokens,
        "--num-prompts": work.requests,
        "--max-concurrency": work.concurrency,
        "--result-dir": work.folder,
        "--result-filename": "vllm.json",
        "--seed": work.seed,
    }
    return [program, "-c", _VLLM, *_flat(options), "--ignore-eos", "--save-result", "--save-detailed", "--disable-tqdm"], "vllm.json"


def _flat(options: Mapping[str, object]) -> list[str]:
    return [str(word) for pair in options.items() for word in pair]


TOOLS: dict[str, Callable[[str, Work], tuple[list[str], str]]] = {"aiperf": _aiperf, "guidellm": _guidellm, "vllm-bench": _vllm_bench}
