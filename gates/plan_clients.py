"""Third-party clients that a plan lets drive the engine beside our own driver: for comparison, never for a verdict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gates.schema import Choice, Problems, Whole, of

TOOLS = ("aiperf", "guidellm", "vllm-bench")  # names of gates/readers, which read what they write


@dataclass(frozen=True)
class PlannedClient:
    """One pass of one client over the first run of each arm in the order of G3: the client, the concurrency (a tier of the plan), its requests."""

    tool: str = of(Choice(TOOLS))
    tier: int = of(Whole(1, 4096))
    requests: int = of(Whole(1, 10**6))

    @property
    def file(self) -> str:
        """Return the name of the file, beside the run's own, that holds the client's result as it wrote it."""
        return f"client-{self.tool}-c{self.tier}.json"


def check_clients(clients: Sequence[PlannedClient], tiers: Sequence[int], instances: int, problems: Problems) -> None:
    """Add a sentence for each client at a concurrency that is not measured, and for each that stands there twice; none drives several instances."""
    if clients and instances > 1:
        problems.add(
            "workload.clients",
            f"they drive one address, and platform.layout.instances is {instances}; leave them out.",
            f"第三方客户端只驱动一个地址，而 platform.layout.instances 为 {instances}；请删去。",
        )
    seen: set[str] = set()
    for n, client in enumerate(clients):
        path = f"workload.clients[{n}]"
        if client.tier not in tiers:
            problems.add(
                f"{path}.tier", f"{client.tier} is not measured; workload.tiers has {list(tiers)}.", f"{client.tier} 不在 workload.tiers 中。"
            )
        if client.file in seen:
            problems.add(path, f"{client.tool} at {client.tier} stands here twice.", f"{client.tool}（并发 {client.tier}）重复。")
        seen.add(client.file)
