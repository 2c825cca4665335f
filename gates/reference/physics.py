"""Published figures against arithmetic: bytes that moved, bytes of a KV cache, what a port can carry, what a price says of a capacity."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from math import ceil
from typing import Any

from gates.reference.raw import Finding, number, pairs, shown, spread

GB = 10**9
BLOCK = 4096  # bytes: the block size that figures of operations per second mean where they name none
PORT_GBIT = 100  # the port of the platform that was measured


def unequal_bytes(data: Mapping[str, Any]) -> Iterator[Finding]:
    """Yield rows whose time x sustained rate before and after cannot be the same bytes, whatever the rounding."""
    for row in data["results"]:
        times, rates = row.get("save_s"), row.get("sustained_write_gb_s")
        if not pairs(row, "save_s") or not pairs(row, "sustained_write_gb_s") or not isinstance(times, Mapping) or not isinstance(rates, Mapping):
            continue
        moved = {side: [t * r for t, r in zip(spread(times[side]), spread(rates[side]), strict=True)] for side in ("before", "after")}
        if moved["before"][1] < moved["after"][0] or moved["after"][1] < moved["before"][0]:
            yield Finding(
                "unequal_bytes",
                row["report"],
                "{what}: time x rate gives {a} GB before and {b} GB after; the two runs did not write the same, or a rate is not sustained.",
                "{what}：时间乘以速率，之前为 {a} GB，之后为 {b} GB；两次写入量不同，或速率并非持续速率。",
                {"what": row["what"], **{k: shown(Fraction(times[s]) * Fraction(rates[s]), 1) for k, s in (("a", "before"), ("b", "after"))}},
            )


def kv_beyond_arithmetic(data: Mapping[str, Any]) -> Iterator[Finding]:
    """Yield sizes of a KV cache that 2 x layers x KV heads x head size x tokens does not give, at one or two bytes a value."""
    for row in data["results"]:
        stated, tokens = number(row.get("kv_gb")), number(row.get("context_tokens"))
        model = data.get("models", {}).get(row.get("model"), {})
        geometry = [number(model.get(k)) for k in ("layers", "kv_heads", "head_dim")]
        if stated is None or tokens is None or None in geometry:
            continue
        values = 2 * tokens
        for factor in geometry:
            values *= factor or 1
        one, two = values / GB, 2 * values / GB
        if not any(abs(stated - size) <= size / 20 for size in (one, two)):
            yield Finding(
                "kv_beyond_arithmetic",
                row["report"],
                "{what}: {a} GB are stated; the model's geometry gives {two} GB a sequence at 2 bytes ({one} GB at 1 byte): {n} sequences.",
                "{what}：公布 {a} GB；按模型结构，每序列 2 字节为 {two} GB（1 字节为 {one} GB），相当于 {n} 个序列。",
                {"what": row["what"], "a": shown(stated, 0), "two": shown(two, 1), "one": shown(one, 1), "n": shown(stated / two, 1)},
            )


def operations_beyond_port(data: Mapping[str, Any]) -> Iterator[Finding]:
    """Yield operations per second that, at 4 KiB, no single port of the range can carry."""
    product = data.get("product_range", {})
    ports = [p for p in map(number, product.get("port_gbit", [])) if p is not None]
    for operations in product.get("iops", []):
        rate = (number(operations) or 0) * BLOCK / Fraction(GB)
        if ports and rate > max(ports) / 8:
            yield Finding(
                "operations_beyond_port",
                "product range",
                "{n} operations per second at 4 KiB are {a} GB/s; a port of {small} Gbit/s carries {s} GB/s, one of {large} Gbit/s {l} GB/s."
                " Block size and number of ports are not stated.",
                "{n} IOPS 按 4 KiB 计为 {a} GB/s；{small} Gbit/s 端口最多 {s} GB/s，{large} Gbit/s 端口最多 {l} GB/s。未说明块大小和端口数。",
                {
                    "n": operations,
                    "a": shown(rate, 1),
                    "small": shown(min(ports), 0),
                    "s": shown(min(ports) / 8, 1),
                    "large": shown(max(ports), 0),
                    "l": shown(max(ports) / 8, 1),
                },
            )


def bandwidth_beyond_port(data: Mapping[str, Any]) -> Iterator[Finding]:
    """Yield bandwidths of a tier that the measured platform's one port cannot carry. A port's line rate is never all payload: hence one port more."""
    for name, tier in data.get("tiers", {}).items():
        wanted, port = number(tier.get("bandwidth_gb_s_min")), Fraction(PORT_GBIT, 8)
        if wanted is not None and wanted > port:
            yield Finding(
                "bandwidth_beyond_port",
                name,
                "{name}: at least {a} GB/s are stated; one {g} Gbit/s port carries at most {p} GB/s before any protocol: it takes {n} ports or more.",
                "{name}：公布不低于 {a} GB/s；单个 {g} Gbit/s 端口扣除协议开销前最多 {p} GB/s，因此至少需要 {n} 个端口。",
                {"name": name, "a": shown(wanted, 0), "g": PORT_GBIT, "p": shown(port, 1), "n": ceil(wanted / port) + (wanted % port == 0)},
            )


def capacities(data: Mapping[str, Any]) -> Iterator[Finding]:
    """Yield prices that, with their price per TB, cannot all be of one capacity, whatever the rounding."""
    ranges = {}
    for item in data.get("products", []):
        price, each = number(item.get("price_cny")), item.get("price_per_tb_cny")
        if price is not None and number(each) is not None:
            low, high = spread(each)
            ranges[item["sku"]] = (price / high, price / low)
    if ranges and max(low for low, _ in ranges.values()) > min(high for _, high in ranges.values()):
        yield Finding(
            "capacities_differ",
            "products",
            "The prices and prices per TB of {skus} are not of one capacity: {tb} TB.",
            "{skus} 的总价与每 TB 单价对应的容量不一致：{tb} TB。",
            {"skus": ", ".join(ranges), "tb": ", ".join(shown((low + high) / 2, 2) for low, high in ranges.values())},
        )
