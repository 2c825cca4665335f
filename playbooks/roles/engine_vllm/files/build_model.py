"""Build a Llama model with random weights and a tokenizer of plain words: `python - DIRECTORY SHAPE_JSON`. Nothing is downloaded.

The weights come from a fixed seed, so two hosts with the same libraries build the same model.
"""

from __future__ import annotations

import json
import os
import shutil
import sys

import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

VOCABULARY = 1024
# Wide enough that the first token depends on the whole prompt: with the usual 0.02 every prompt gets the same answer, and an answer
# from the wrong KV could not be told from the right one.
INITIALIZER_RANGE = 0.15


def tokenizer() -> PreTrainedTokenizerFast:
    """Return a tokenizer in which every token is a word of its own: bytes would be held back until they make a character."""
    words = {f"w{i:04d}": i for i in range(VOCABULARY)}
    made = Tokenizer(models.WordLevel(vocab=words, unk_token="w0000"))
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PreTrainedTokenizerFast(tokenizer_object=made, unk_token="w0000", bos_token="w0001", eos_token="w0002")


def main(folder: str, shape: str) -> None:
    """Write the model into the folder, whole or not at all."""
    words = tokenizer()
    torch.manual_seed(20261129)
    config = LlamaConfig(
        vocab_size=VOCABULARY, bos_token_id=1, eos_token_id=2, tie_word_embeddings=False, initializer_range=INITIALIZER_RANGE, **json.loads(shape)
    )
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
