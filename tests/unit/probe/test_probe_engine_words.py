"""What engine.json says an engine was started with: its own command line, and the model's configuration by its hash."""

import hashlib

import pytest
from probe import engine_words, proc

VLLM = ["python", "-m", "vllm.entrypoints.openai.api_server", "--model", "/m"]


@pytest.mark.parametrize("launcher", [["python", "-I", "launch.py", "processes.json"], ["docker", "run", "--entrypoint", "python", "sha256:00"]])
def test_the_engine_is_told_from_what_only_started_it(monkeypatch, launcher):
    lines = {1: launcher, 2: ["python", "-m", "lmcache.v1.multiprocess.server"], 3: VLLM}
    monkeypatch.setattr(proc, "command_line", lines.__getitem__)
    assert engine_words.own(1, [1, 2, 3]) == 3
    assert engine_words.own(1, [1, 2]) == 1


@pytest.mark.parametrize("words", [["--model", "{m}"], ["--model={m}"], ["--model-path", "{m}"], ["vllm", "serve", "{m}"]])
def test_the_models_configuration_is_hashed_in_the_folder_that_the_command_line_names(tmp_path, words):
    config = b'{"num_hidden_layers": 62}'
    (tmp_path / "config.json").write_bytes(config)
    argv = ["python", *(word.replace("{m}", str(tmp_path)) for word in words)]
    assert engine_words.model_config(0, argv, procfs=str(tmp_path)) == hashlib.sha256(config).hexdigest()
    root = tmp_path / "7" / "root" / str(tmp_path).lstrip("/")
    root.mkdir(parents=True)
    (root / "config.json").write_bytes(b"{}")  # what a container sees at that path comes first
    assert engine_words.model_config(7, argv, procfs=str(tmp_path)) == hashlib.sha256(b"{}").hexdigest()


def test_a_model_that_is_named_by_no_folder_has_no_hash():
    assert engine_words.model_config(0, ["vllm", "serve", "Qwen/Qwen3-Coder"]) is None
    assert engine_words.model_config(0, ["lab_engine.pyz", "--config", "x.json"]) is None


def test_keys_and_tokens_are_struck_out():
    assert engine_words.without_secrets(["--api-key", "k", "--token=t", "--port", "1"]) == ["--api-key", "***", "--token=***", "--port", "1"]
