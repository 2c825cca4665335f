"""A byte-level tokenizer on the disk (one token a byte), so that no client asks a model hub for one."""

from __future__ import annotations

import json
from pathlib import Path


def _byte_characters() -> list[str]:
    """Return the character that byte-level BPE writes for each byte: printable ones for themselves, the others from U+0100 on."""
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = iter(range(0x100, 0x200))
    return [chr(byte) if byte in plain else chr(next(others)) for byte in range(256)]


def write_tokenizer(folder: Path) -> None:
    """Write what `AutoTokenizer.from_pretrained(folder)` reads."""
    folder.mkdir(parents=True, exist_ok=True)
    vocabulary = {character: number for number, character in enumerate(_byte_characters())}
    special = {"id": 256, "content": "<|end|>", "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    model = {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None, "end_of_word_suffix": None, "fuse_unk": False}
    model.update(byte_fallback=False, ignore_merges=False, vocab={**vocabulary, "<|end|>": 256}, merges=[])
    whole = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": [special], "normalizer": None, "pre_tokenizer": byte_level}
    whole.update(post_processor=None, decoder=byte_level, model=model)
    (folder / "tokenizer.json").write_text(json.dumps(whole), encoding="utf-8")
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "<|end|>", "pad_token": "<|end|>", "model_max_length": 1_000_000}
    (folder / "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")
    shape = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 257, "hidden_size": 64, "num_hidden_layers": 1}
    shape.update(num_attention_heads=1, intermediate_size=64)
    (folder / "config.json").write_text(json.dumps(shape), encoding="utf-8")
