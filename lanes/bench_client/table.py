"""From outcomes to a table, the limits on it, and docs/bench-client.md."""

from __future__ import annotations

from dataclasses import dataclass, field

from lanes.bench_client.cell import Outcome

P99_SHARE = 0.5  # ours at most half the best peer's, by the issue that asked for the lane


@dataclass
class Row:
    """A client at one concurrency: all its rounds together, or why it did not run."""

    client: str
    concurrency: int
    outcomes: list[Outcome] = field(default_factory=list)
    not_run: str = ""

    @property
    def errors(self) -> list[int]:
        """Return |receipt - send stamp| of every joined request, sorted, ns."""
        return sorted(abs(e) for o in self.outcomes for e in o.errors)

    @property
    def read_errors(self) -> list[int]:
        """Return the same for when the client's own loop read the text, where it says so."""
        return sorted(abs(e) for o in self.outcomes for e in o.read_errors)

    @property
    def ttfts(self) -> list[int]:
        """Return the client's own TTFT of every joined request, sorted, ns."""
        return sorted(t for o in self.outcomes for t in o.ttfts)

    @property
    def cpu_ms(self) -> float:
        """Return CPU milliseconds a request of the whole process tree, from start to end."""
        return 1e3 * sum(o.cpu_s for o in self.outcomes) / sum(o.asked for o in self.outcomes)

    @property
    def load_cpu_ms(self) -> float:
        """Return the same between the first request and the last answer: start-up and report left out."""
        return 1e3 * sum(o.load_cpu_s for o in self.outcomes) / sum(o.asked for o in self.outcomes)


def nearest_rank(ordered: list[int], share: float) -> int:
    """Return the nearest-rank percentile of sorted values."""
    return ordered[max(0, -(-int(share * 1000) * len(ordered) // 1000) - 1)]


def breaches(rows: list[Row], ours: str) -> list[str]:
    """Return a sentence for each limit that is not kept; a client that did not run is no peer to be better than."""
    out = []
    for concurrency in sorted({row.concurrency for row in rows}):
        here = [row for row in rows if row.concurrency == concurrency]
        own = next(row for row in here if row.client == ours)
        peers = [row for row in here if row.client != ours and not row.not_run]
        if own.not_run or not peers:
            out.append(f"c{concurrency}: nothing to compare ({own.not_run or 'no peer ran'}).")
            continue
        if len(own.errors) != sum(o.asked for o in own.outcomes):
            out.append(f"c{concurrency}: only {len(own.errors)} of our requests can be joined with the server's account.")
        for name, share, factor in (("p50", 0.5, 1.0), ("p99", 0.99, P99_SHARE)):
            best = min(peers, key=lambda row: nearest_rank(row.errors, share))
            mine, limit = nearest_rank(own.errors, share), factor * nearest_rank(best.errors, share)
            if mine > limit:
                out.append(f"c{concurrency}: our {name} error is {mine / 1e6:.3f} ms, at most {limit / 1e6:.3f} ms wanted ({best.client}).")
        for what, attribute in (("CPU", "cpu_ms"), ("CPU under load", "load_cpu_ms")):
            best = min(peers, key=lambda row: float(getattr(row, attribute)))
            if not getattr(own, attribute) < getattr(best, attribute):
                out.append(
                    f"c{concurrency}: our {what} is {getattr(own, attribute):.2f} ms a request, {best.client}'s {getattr(best, attribute):.2f} ms."
                )
    return out


def _line(row: Row) -> str:
    if row.not_run:
        return f"| {row.concurrency} | {row.client} | NOT RUN: {row.not_run} | | | | | | | |"
    e, asked, own = row.errors, sum(o.asked for o in row.outcomes), row.ttfts
    cells = [f"{nearest_rank(own, share) / 1e6:.2f}" if own else "-" for share in (0.5, 0.99)]
    cells += [f"{nearest_rank(e, share) / 1e6:.3f}" for share in (0.5, 0.99)] + [f"{e[-1] / 1e6:.3f}"]
    return f"| {row.concurrency} | {row.client} | {len(e)} of {asked} | {' | '.join(cells)} | {row.cpu_ms:.2f} | {row.load_cpu_ms:.2f} |"


def peers_of(rows: list[Row], ours: str) -> str:
    """Return which peers were compared with at each concurrency, and which were not there to be better than."""
    said = []
    for concurrency in sorted({row.concurrency for row in rows}):
        peers = [row for row in rows if row.concurrency == concurrency and row.client != ours]
        ran, absent = ([row.client for row in peers if bool(row.not_run) is gone] for gone in (False, True))
        said.append(f"c{concurrency}: {', '.join(ran) or 'nobody'}" + (f" (NOT RUN: {', '.join(absent)})" if absent else ""))
    return "; ".join(said)


def _by_our_loop(rows: list[Row], ours: str) -> list[str]:
    """Return, for each concurrency at which we ran, whether the limit at p99 would hold by what our loop read alone, without the kernel's stamps."""
    said = []
    for row in rows:
        peers = [peer for peer in rows if peer.concurrency == row.concurrency and peer.client != ours and not peer.not_run]
        if row.client == ours and row.read_errors and peers:
            best = min(nearest_rank(peer.errors, 0.99) for peer in peers)
            mine, limit = nearest_rank(row.read_errors, 0.99), P99_SHARE * best
            kept = "would keep" if mine <= limit else "would NOT keep"
            figures = f"{mine / 1e6:.3f} ms against {P99_SHARE} of {best / 1e6:.3f} ms"
            said.append(f"At {row.concurrency} our loop's own reading {kept} the limit at p99: {figures}.")
    return said


def markdown(rows: list[Row], broken: list[str], facts: dict[str, str], ours: str) -> str:
    """Return docs/bench-client.md."""
    lines = [
        "# Our driver beside other clients",
        "",
        "Made by `make bench-client`; do not edit. One server of known truth (`calibration-server` of the probe) stamps each text chunk with",
        "CLOCK_MONOTONIC right before its write. Error = when the client says that the first text came, minus the server's send stamp of that very",
        "request (joined by a word in the text, or by the request's id). TTFT is what the client itself gives, by its own definition of the start.",
        "CPU is user + system of the client's whole process tree per request: from start to end, and between the first request and the last answer",
        "alone, which leaves start-up and report out.",
        "",
        "| concurrency | client | joined | TTFT p50 ms | TTFT p99 ms | error p50 ms | p99 ms | max ms | CPU ms / request | under load |",
        "|---|---|---|---|---|---|---|---|---|---|",
        *map(_line, rows),
        "",
        "Our receipts are the kernel's stamps of the segments (`SO_TIMESTAMPNS`), so they hold while the loop is busy. For the judge of that choice,",
        "when our own loop read the same texts:",
        "",
        "| concurrency | read by our loop: p50 ms | p99 ms | max ms |",
        "|---|---|---|---|",
    ]
    for row in rows:
        if row.client == ours and row.read_errors:
            e = row.read_errors
            lines.append(f"| {row.concurrency} | {nearest_rank(e, 0.5) / 1e6:.3f} | {nearest_rank(e, 0.99) / 1e6:.3f} | {e[-1] / 1e6:.3f} |")
    lines += ["", *(f"{sentence} The receipts that are compared are the kernel's." for sentence in _by_our_loop(rows, ours))]
    lines += ["", "Limits: our error the smallest at p50, at p99 at most half the best peer's; our CPU per request the lowest, both ways.", ""]
    lines += [f"- NOT KEPT: {sentence}" for sentence in broken]
    absent = any(row.not_run for row in rows)
    kept = "All kept against those that ran; nothing is said about the others." if absent else "All kept."
    lines += [*([] if broken else [kept]), "", f"Compared with {peers_of(rows, ours)}."]
    lines += ["", "Conditions:", "", *(f"- {key}: {value}" for key, value in facts.items()), ""]
    return "\n".join(lines)
