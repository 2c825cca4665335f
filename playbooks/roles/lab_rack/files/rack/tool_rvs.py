"""rvs: a stress test of the GPUs, in the text that level 3 of its log prints: one line an interval, then whether the target was met."""

import time
from typing import Any, Dict, List

INTERVAL_S, INTERVALS = 3, 5
GFLOPS, WAVE = 96500.0, 0.004  # of each GPU; from interval to interval


def main(argv: List[str], rack: Dict[str, Any]) -> int:
    """Put every GPU of the rack under stress at once; its time passes scaled."""
    if "--version" in argv:
        print("RVS version: %s" % rack["tools"].get("rvs", "1.1.0"))
        return 0
    if not rack["gpus"]:
        print("[ERROR ] [     0.000000] [gst] No AMD compatible GPU found.")
        return 1
    time.sleep(INTERVAL_S * INTERVALS / float(rack["time_scale"]))
    begun = 512330.130442
    for number in range(INTERVALS):
        for index, gpu in enumerate(rack["gpus"]):
            share = gpu.get("weak", 1.0) if number == INTERVALS - 1 else 1.0
            rate = GFLOPS * share * (1 - WAVE * ((number + index) % 3))
            _say(begun + INTERVAL_S * (number + 1), index, "GFLOPS %.2f" % rate)
    for index in range(len(rack["gpus"])):
        _say(begun + INTERVAL_S * (INTERVALS + 1), index, "Target GFLOPS: 96000 met: TRUE")
    return 0


def _say(at: float, index: int, what: str) -> None:
    print("[RESULT] [ %.6f] [gst-lab] [GPU:: %d] %s" % (at, 28851 + index, what))
