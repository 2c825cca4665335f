"""G1, arrival acceptance (到货验收): what was ordered, new and healthy, running at what it is rated for.

Background of the checks: every set is compared by identity (serial numbers, host names), never by count alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from gates.g1.bandwidth import bandwidth_check
from gates.g1.cpu import cpu_check
from gates.g1.declared import SERIALS
from gates.g1.declared_more import FABRIC, RDMA_RATE
from gates.g1.drive_more import aer_check, ceiling_check, drive_log_checks
from gates.g1.drive_wear import wear_checks
from gates.g1.error_log import log_check
from gates.g1.fabric import dscp_check, fabric_checks
from gates.g1.fabric_paths import fabric_path_checks
from gates.g1.gpu_heat import heat_checks
from gates.g1.gpu_more import part_checks
from gates.g1.gpu_partition import partition_checks
from gates.g1.gpu_replays import replay_check
from gates.g1.health import health_checks
from gates.g1.host_log import kernel_log_check
from gates.g1.host_tuning import tuning_checks
from gates.g1.identity import capacity_check, firmware_check, model_check, order_check, serial_checks
from gates.g1.inventory import Inventory, take_inventory
from gates.g1.kinds import kind_name, passive
from gates.g1.link_fec import fec_check
from gates.g1.links import pcie_checks, port_checks
from gates.g1.order import Order, parse_order
from gates.g1.pack import HostPack
from gates.g1.people import form_params, people_checks
from gates.g1.platform import gpu_check, host_check
from gates.g1.raw import raw_checks, read_rates
from gates.g1.switch import storm_check
from gates.model import CheckResult, GateJudgement, GateSpec, StepKind, StepSpec
from gates.rules.findings import left_out
from gates.steps import judge_step, report_step
from gates.text import Text

if TYPE_CHECKING:
    from gates.bundle import Bundle
    from gates.plan import Plan

HOST_FILES = ("commands.json", "host.json")
# How the raw read is done; no limit stands here. Sequential reads of 1 MiB, deep enough to fill a drive.
RAW_READ = {"runtime_s": 30, "block": "1M", "depth": 32, "settle_s": 1}

# How the RDMA bandwidth is measured where the plan asks for it: as long, with as many queue pairs, as acceptance tests do; the site may name others.
RDMA_TEST = {"seconds": 30, "message_bytes": 65536, "queue_pairs": 4}


def steps(plan: Plan) -> tuple[StepSpec, ...]:
    """Return the steps of G1: people first, then what the machines say, then raw reads, then the wire where the plan asks for it."""
    return (
        StepSpec(
            key="unpacking",
            kind=StepKind.MANUAL,
            title=Text("Unpacking inspection", "开箱检验"),
            params=form_params(plan),
            expects={"site": ("form.json",)},
            timeout_s=14 * 86400,
        ),
        StepSpec(
            key="survey",
            kind=StepKind.PLAYBOOK,
            title=Text("Survey of hardware, firmware, health and links", "硬件、固件、健康与链路调查"),
            playbook="survey.yml",
            expects={"engine": HOST_FILES, "storage": (*HOST_FILES, "nvme-list.out")},
            timeout_s=3600,  # a site may let its GPUs be put under stress
        ),
        StepSpec(
            key="storage",
            kind=StepKind.PLAYBOOK,
            title=Text("Raw reads of every drive, links under load", "逐盘裸读与负载下链路检查"),
            playbook="storage.yml",
            params={"fio": dict(RAW_READ)},
            expects={"storage": (*HOST_FILES, "nvme-list.out")},
            timeout_s=7200,
        ),
        *_rdma_step(plan),
        judge_step(),
        report_step(),
    )


def _rdma_step(plan: Plan) -> tuple[StepSpec, ...]:
    if not plan.requires(RDMA_RATE.group):
        return ()
    step = StepSpec(
        key="rdma",
        kind=StepKind.PLAYBOOK,
        title=Text("RDMA bandwidth between pairs of ports", "端口之间的 RDMA 带宽"),
        playbook="rdma.yml",
        params={"perftest": dict(RDMA_TEST)},
        expects={"engine": HOST_FILES, "storage": HOST_FILES},
        timeout_s=7200,
    )
    return (step,)


def judge(plan: Plan, bundle: Bundle) -> GateJudgement:
    """Judge the arrival from plan and evidence alone."""
    order = parse_order(bundle.inputs)
    hosts = {group: bundle.hosts(group) for group in ("engine", "storage")}
    survey = {host: HostPack(bundle, "survey", host) for host in (*hosts["engine"], *hosts["storage"])}
    storage = {host: HostPack(bundle, "storage", host) for host in hosts["storage"]}
    rdma = {host: HostPack(bundle, "rdma", host) for host in survey}
    inventory = take_inventory(survey, hosts, order)
    gpus = gpu_check(plan, order, hosts["engine"], survey)
    rows = [
        *people_checks(plan, bundle, order),
        host_check(plan, hosts, survey, storage),
        order_check(plan, order),
        *serial_checks(plan, order, inventory),
        model_check(plan, order, inventory),
        firmware_check(plan, order, inventory),
        *_drive_rows(plan, order, inventory, survey, storage),
        *_link_rows(plan, order, inventory, survey, storage, rdma),
        *fabric_path_checks(plan, "g1", FABRIC, {host: survey[host] for host in hosts["engine"]}),
        gpus,
        *part_checks(plan, hosts["engine"], survey, gpus=isinstance(gpus, CheckResult)),
        cpu_check(plan, hosts["engine"], survey),
        kernel_log_check(plan, survey),
        *tuning_checks(plan, hosts["engine"], survey),
        *(partition_checks(plan, hosts["engine"], survey) if isinstance(gpus, CheckResult) else ()),
        *(heat_checks(plan, hosts["engine"], survey) if isinstance(gpus, CheckResult) else ()),
        *((replay_check(plan, hosts["engine"], survey),) if isinstance(gpus, CheckResult) else ()),
        *_passive(order),
    ]
    return GateJudgement(
        checks=tuple(row for row in rows if isinstance(row, CheckResult)),
        not_tested=tuple(row for row in rows if isinstance(row, dict)),
        figures=_figures(order, inventory, storage),
    )


def _drive_rows(
    plan: Plan, order: Order, inventory: Inventory, survey: dict[str, HostPack], storage: dict[str, HostPack]
) -> Iterator[CheckResult | dict[str, Any]]:
    drives = order.of("drive")
    if not drives and not any(line.kind == "drive" for line in order.lines):
        yield left_out("g1.drive", Text("Drives", "硬盘"), Text("No drive is ordered.", "订单中没有硬盘。"))
        return
    yield capacity_check(plan, order, inventory)
    yield from health_checks(plan, drives, inventory, survey)
    yield from drive_log_checks(plan, drives, inventory, survey, storage)
    yield from raw_checks(plan, drives, storage)
    yield ceiling_check(plan, drives, inventory, storage)
    yield log_check(plan, drives, inventory, survey, storage)
    yield from wear_checks(plan, drives, inventory, survey, storage)


def _link_rows(
    plan: Plan, order: Order, inventory: Inventory, survey: dict[str, HostPack], storage: dict[str, HostPack], rdma: dict[str, HostPack]
) -> Iterator[CheckResult | dict[str, Any]]:
    if any(kind in order.kinds() for kind in ("drive", "nic")):
        yield from pcie_checks(plan, order, inventory, survey, storage)
        yield aer_check(plan, tuple(item for item in order.packed if item.kind in ("drive", "nic")), inventory, survey)
    if "nic" in order.kinds():
        yield from port_checks(plan, order, inventory, survey)
        yield from fabric_checks(plan, order.of("nic"), inventory, survey)
        yield dscp_check(plan, order.of("nic"), inventory, survey)
        yield from fec_check(plan, order.of("nic"), inventory, survey)
        yield storm_check(plan, survey)
        yield bandwidth_check(plan, order.of("nic"), inventory, survey, (rdma, storage))
    else:
        yield left_out("g1.rdma", Text("Ports of the storage network", "存储网络端口"), Text("No adapter is ordered.", "订单中没有网卡。"))


def _passive(order: Order) -> Iterator[dict[str, Any]]:
    for kind in sorted({item.kind for item in order.packed if passive(item.kind)}):
        why = Text("No tool reads this kind; the unpacking form confirms labels and numbers.", "该类物品无法由工具读取，标签与数量由开箱检验表确认。")
        yield left_out(f"g1.serials.{kind}", SERIALS.title.fill(name=kind_name(kind)), why)


def _items(order: Order, inventory: Inventory) -> list[dict[str, Any]]:
    """Return the delivered items with what the machines say of them, for the report."""
    rows = []
    for item in order.packed:
        seen = inventory.find(item.kind, item.serial)
        rows.append(
            {
                "kind": item.kind,
                "model": item.model,
                "serial": item.serial,
                "host": seen.host if seen else item.host,
                "firmware": (seen.firmware or None) if seen else None,
                "capacity_bytes": f"{seen.capacity:f}" if seen and seen.capacity is not None else None,
                "quantity": item.quantity,
                "seen": seen is not None,
            }
        )
    return rows


def _figures(order: Order, inventory: Inventory, storage: dict[str, HostPack]) -> dict[str, Any]:
    rates = read_rates(order.of("drive"), storage)
    seen = {item.serial: item.host for item in inventory.of("drive")}
    read = [{"serial": s, "host": seen.get(s, ""), "read_bytes_per_s": f"{rate:f}"} for s, rate in rates.items()]
    return {"items": _items(order, inventory), "drives": read}


GATE = GateSpec(id="G1", order=1, title=Text("Arrival acceptance", "到货验收"), steps=steps, judge=judge)
