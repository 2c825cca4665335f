"""What the machines say they hold: drives, adapters, arrays and GPUs with their identities, from the survey packs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal

from gates.g1.gpus import devices, gpu_lists
from gates.g1.kinds import KINDS
from gates.g1.order import Order
from gates.g1.pack import Answer, HostPack
from gates.readers.dmidecode import MODULE
from gates.readers.pci_link import LINK_UNTOLD
from gates.rules.findings import Finding, doubtful, unknown


@dataclass(frozen=True)
class Item:
    """One part as a machine reports it."""

    kind: str
    serial: str
    host: str
    model: str = ""
    firmware: str = ""
    capacity: Decimal | None = None  # bytes
    name: str = ""  # nvme0, ens8f0np0
    address: str = ""  # PCI
    evidence: tuple[str, ...] = ()
    also_at: tuple[str, ...] = ()  # further hosts that reach the same part by ports of their own
    nqn: str = ""  # of a drive's NVMe subsystem
    ports: frozenset[str] = frozenset()  # controller ids within it


@dataclass
class Inventory:
    """All parts seen, and for each kind what keeps the list from being complete."""

    items: list[Item] = field(default_factory=list)
    gaps: dict[str, list[Finding]] = field(default_factory=dict)

    def of(self, kind: str) -> list[Item]:
        """Return the items of a kind."""
        return [item for item in self.items if item.kind == kind]

    def find(self, kind: str, serial: str) -> Item | None:
        """Return the item with a serial number, when exactly one is seen."""
        found = [item for item in self.of(kind) if item.serial == serial]
        return found[0] if len(found) == 1 else None

    def join_ports(self) -> None:
        """Make one item of a drive that several hosts reach by ports of their own: one subsystem, different controller ids, told by the drive.

        A name that was made from the serial number proves nothing, so two drives that share a serial number stay two.
        """
        joined: list[Item] = []
        for item in self.items:
            n = next((n for n, first in enumerate(joined) if _port_of_one(first, item)), None)
            if n is None:
                joined.append(item)
            else:
                first = joined[n]
                evidence, hosts = (*first.evidence, *item.evidence), (*first.also_at, item.host)
                joined[n] = replace(first, also_at=hosts, ports=first.ports | item.ports, evidence=evidence)
        self.items = joined

    def gap(self, kind: str, finding: Finding) -> None:
        """Note that the list of a kind is not complete."""
        self.gaps.setdefault(kind, []).append(finding)


def take_inventory(packs: Mapping[str, HostPack], groups: Mapping[str, Sequence[str]], order: Order) -> Inventory:
    """Return what the hosts hold, kind by kind as far as the order or the packing list has the kind, each kind on the hosts of its groups."""
    inventory = Inventory()
    kinds = order.kinds()
    for kind, take in _TAKERS.items():
        if kind not in kinds:
            continue
        for host in dict.fromkeys(host for group in KINDS[kind].read_on for host in groups[group]):
            pack = packs[host]
            if pack.trouble:
                inventory.gap(kind, unknown("{why}", "{why}", why=pack.trouble))
            else:
                take(pack, inventory)
    inventory.join_ports()
    return inventory


# Made by the system from vendor and serial number for a drive that names no subsystem.
_MADE_UP = "nqn.2014.08.org.nvmexpress:"


def _port_of_one(a: Item, b: Item) -> bool:
    same = (a.kind, a.serial, a.model, a.capacity, a.nqn) == (b.kind, b.serial, b.model, b.capacity, b.nqn)
    told = bool(a.nqn and a.ports and b.ports) and not a.nqn.startswith(_MADE_UP)
    return same and told and b.host not in (a.host, *a.also_at) and not a.ports & b.ports


def take_drives(pack: HostPack, inventory: Inventory) -> None:
    """Add the drives of one host from nvme list (and list-subsys for addresses)."""
    listing = pack.answer("nvme-list")
    if listing.problems:
        inventory.gap("drive", doubtful(pack.host, listing.problems, listing.path))
    paths = pack.answer("nvme-list-subsys")
    for seen in listing.all("drive.serial"):
        controller, serial = seen.labels["controller"], str(seen.value)
        capacities = [o.value for o in listing.all("drive.capacity", controller=controller) if isinstance(o.value, Decimal)]
        address = listing.one("drive.address", controller=controller) or paths.one("drive.address", controller=controller)
        nqn, ports = _subsystem(pack, listing, paths, controller, serial)
        inventory.items.append(
            Item(
                kind="drive",
                serial=serial,
                host=pack.host,
                model=_text(listing, "drive.model", controller=controller),
                firmware=_text(listing, "drive.firmware", controller=controller),
                capacity=sum(capacities, Decimal(0)) if capacities else None,
                name=controller,
                address=str(address.value).lower() if address else "",
                evidence=(listing.path,),
                nqn=nqn,
                ports=ports,
            )
        )


def _subsystem(pack: HostPack, listing: Answer, paths: Answer, controller: str, serial: str) -> tuple[str, frozenset[str]]:
    """Return the name of a drive's subsystem and its controller ids at this host, from the list where it tells them, else from the drive."""
    nqns = {str(o.value) for o in listing.all("drive.nqn", serial=serial)}
    ports = frozenset(str(o.value) for o in listing.all("drive.cntlid", serial=serial))
    if not nqns or not ports:
        identity = pack.answer(f"nvme-id-ctrl.{controller}")
        told = nqns or {str(o.value) for o in (*identity.all("drive.nqn"), *paths.all("drive.nqn", controller=controller))}
        nqns, ports = told, ports or frozenset(str(o.value) for o in identity.all("drive.cntlid"))
    return (nqns.pop() if len(nqns) == 1 else ""), ports


def _take_adapters(pack: HostPack, inventory: Inventory) -> None:
    """Add the adapters: the interface says its bus address, the PCI device there says serial number and name."""
    devices = pack.answer("lspci")
    drivers = pack.answers("ethtool-driver")
    troubles = [p for p in devices.problems if p.code != LINK_UNTOLD]  # a link that is not told says nothing against a serial number
    if troubles:
        inventory.gap("nic", doubtful(pack.host, troubles, devices.path))
    if not drivers:
        inventory.gap("nic", unknown("{host}: no RDMA interface was found", "{host}：未找到 RDMA 接口", pack.path("commands.json"), host=pack.host))
    seen: dict[str, Item] = {}
    for driver in drivers:
        if driver.problems:
            inventory.gap("nic", doubtful(pack.host, driver.problems, driver.path))
        bus = driver.one("net.bus")
        serial = devices.one("pci.serial", address=str(bus.value).lower()) if bus else None
        interface = driver.name.partition(".")[2]
        if bus is None or serial is None:
            words = "{host}: the serial number of the adapter behind {interface} cannot be read", "{host}：无法读取接口 {interface} 所在网卡的序列号"
            inventory.gap("nic", unknown(*words, driver.path, devices.path, host=pack.host, interface=interface))
            continue
        address = str(bus.value).lower()
        item = Item(
            kind="nic",
            serial=str(serial.value),
            host=pack.host,
            model=_text(devices, "pci.name", address=address),
            firmware=_text(driver, "net.firmware"),
            name=interface,
            address=address,
            evidence=(driver.path, devices.path),
        )
        known = seen.get(item.serial)  # a card with two ports is one item with two interfaces
        seen[item.serial] = replace(known, name=f"{known.name} {interface}") if known else item
    inventory.items += seen.values()


def _take_gpus(pack: HostPack, inventory: Inventory) -> None:
    """Add the GPUs of one host, by the serial numbers of whichever tool it has. Chips and partitions of one card are one item."""
    for answer in gpu_lists(pack):
        if answer.problems:
            inventory.gap("gpu", doubtful(pack.host, answer.problems, answer.path))
        seen: dict[tuple[str, str], Item] = {}
        for device in devices(answer):
            if not device.serial:
                words = "{host}: the serial number of GPU {i} cannot be read", "{host}：无法读取 GPU {i} 的序列号"
                inventory.gap("gpu", unknown(*words, answer.path, host=pack.host, i=device.index))
                continue
            # Partitions of one card are functions of one device; chips of one card share its number.
            card = device.index if device.chip else device.address.rpartition(".")[0] or device.index
            known = seen.get((device.serial, card))
            item = Item(
                kind="gpu",
                serial=device.serial,
                host=pack.host,
                model=device.model,
                firmware=device.firmware,
                name=device.index,
                address=device.address,
                evidence=(answer.path,),
            )
            seen[(device.serial, card)] = replace(known, name=f"{known.name} {device.index}") if known else item
        inventory.items += seen.values()


def _machine(kind: str) -> Callable[[HostPack, Inventory], None]:
    """Return what adds the machine itself as an item of a kind: an array's head, or a server."""

    def take(pack: HostPack, inventory: Inventory) -> None:
        system = pack.answer("dmidecode")
        serial = system.one("system.serial")
        troubles = [p for p in system.problems if p.code != MODULE]  # a module of unknown speed says nothing against the machine's own label
        if serial is None or troubles:
            inventory.gap(kind, doubtful(pack.host, troubles, system.path))
        if serial is None:
            return
        inventory.items.append(
            Item(
                kind=kind,
                serial=str(serial.value),
                host=pack.host,
                model=_text(system, "system.product"),
                firmware=_text(system, "system.version"),
                evidence=(system.path,),
            )
        )

    return take


def _text(answer: Answer, quantity: str, **labels: str) -> str:
    """Return an observed text, or an empty one."""
    seen = answer.one(quantity, **labels)
    return str(seen.value) if seen else ""


_TAKERS: dict[str, Callable[[HostPack, Inventory], None]] = {
    "array": _machine("array"),
    "drive": take_drives,
    "nic": _take_adapters,
    "gpu": _take_gpus,
    "server": _machine("server"),
}
