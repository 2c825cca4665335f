"""Plays a benchmark client: asks the engine prompts in words, always the same, and writes a result that the real client once wrote.

stand_in_client.py URL MODEL REQUESTS SAMPLE RESULT
"""

import json
import sys
import urllib.request
from pathlib import Path

url, model, requests, sample, result = sys.argv[1:]
for n in range(int(requests)):
    body = {"model": model, "prompt": f"{n:03d} " * 128, "max_tokens": 4, "stream": True, "ignore_eos": True, "temperature": 0}
    asked = urllib.request.Request(url + "/v1/completions", json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(asked, timeout=30) as answer:
        assert b"[DONE]" in answer.read()
target = Path(result)
target.parent.mkdir(parents=True, exist_ok=True)
target.write_bytes(Path(sample).read_bytes())
print("asked", requests)
