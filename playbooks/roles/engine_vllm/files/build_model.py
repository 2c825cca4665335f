"""Build a Llama model with random weights and a byte-level tokenizer: `python - DIRECTORY SHAPE_JSON`. Nothing is downloaded.

The weights come from a fixed seed, so two hosts with the same libraries build the same model.
"""

from __future__ import annotations

import json
import os
import shutil
import sys

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

SPECIALS = ("<s>", "</s>")


def tokenizer() -> PreTrainedTokenizerFast:
    """Return a tokenizer whose tokens are the 256 bytes and two marks."""
    words = {word: i for i, word in enumerate([*SPECIALS, *sorted(pre_tokenizers.ByteLevel.alphabet())])}
    made = Tokenizer(models.BPE(vocab=words, merges=[]))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(tokenizer_object=made, bos_token=SPECIALS[0], eos_token=SPECIALS[1])


def main(folder: str, shape: str) -> None:
    """Write the model into the folder, whole or not at all."""
    words = tokenizer()
    torch.manual_seed(20261129)
    config = LlamaConfig(vocab_size=len(words), bos_token_id=0, eos_token_id=1, tie_word_embeddings=False, **json.loads(shape))
    model = LlamaForCausalLM(config).to(torch.bfloat16)
    partial = folder.rstrip("/") + ".partial"
    shutil.rmtree(partial, ignore_errors=True)
    os.makedirs(partial)
    model.save_pretrained(partial, safe_serialization=True)
    words.save_pretrained(partial)
    shutil.rmtree(folder, ignore_errors=True)
    os.rename(partial, folder)
    print(sum(parameter.numel() for parameter in model.parameters()))


if __name__ == "__main__":
    main(*sys.argv[1:])
