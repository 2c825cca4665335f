"""Hold rendered engines against the real parsers: `python parse.py SOURCES < {name: {"processes": [...], "files": {...}}}`, by the lane's own Python.

Prints {name: [problems]}, one sentence each; an empty list means that every flag, key and environment variable is known to the release.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import inspect
import io
import json
import logging
import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

SOURCES = Path(sys.argv[1]).resolve()
_SAYS = re.compile(r"\b(log|logger|warn|warning|info|debug|error|print)\b")  # tells of a key, and looks nothing up
OTHER_ENV = ("PATH", "PYTHONHASHSEED", "HF_HUB_OFFLINE", "VLLM_PLUGINS", "HIP_VISIBLE_DEVICES")  # not the engine's own


class Asked(dict):  # type: ignore[type-arg]
    """A dict that remembers which of its keys were looked for: a key that no reader asks for is unknown to it."""

    def __init__(self, data: dict[str, Any]) -> None:
        super().__init__(data)
        self.asked: set[str] = set()

    def get(self, key: str, default: Any = None) -> Any:
        """Return the value, noting the key."""
        self.asked.add(key)
        return super().get(key, default)

    def __getitem__(self, key: str) -> Any:
        self.asked.add(key)
        return super().__getitem__(key)

    def __contains__(self, key: object) -> bool:
        self.asked.add(str(key))
        return super().__contains__(key)

    def unread(self, *others: str) -> list[str]:
        """Return the keys that nobody asked for."""
        return sorted(set(self) - self.asked - set(others))


def literals(*places: str) -> set[str]:
    """Return the keys that the code below these paths looks up in an extra configuration.

    That is `extra.get("key")`, `get_extra_value("key")`, `extra["key"]` or `"key" in extra`. A text that stands as the argument of any other call
    (a log line, a name) is read by nobody.
    """
    found: set[str] = set()
    for place in places:
        path = SOURCES / place
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            found |= keys_read(file.read_text(encoding="utf-8"))
    return found


def keys_read(source: str) -> set[str]:
    """Return the keys that one file looks up in something that is called extra."""
    looked_up: list[tuple[ast.expr, ast.expr]] = []  # where, and the key
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and node.args:
            looked_up.append((node.func, node.args[0]))
        elif isinstance(node, ast.Subscript):
            looked_up.append((node.value, node.slice))
        elif isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.ops[0], (ast.In, ast.NotIn)):
            looked_up.append((node.comparators[0], node.left))
    return {
        key.value
        for where, key in looked_up
        if isinstance(key, ast.Constant)
        and isinstance(key.value, str)
        and "extra" in ast.unparse(where).lower()
        and not _SAYS.search(ast.unparse(where))
    }


def parsed(parser: argparse.ArgumentParser, argv: list[str], what: str, problems: list[str]) -> Any:
    """Parse; an abbreviation is a problem too, since the next release may make it ambiguous."""
    known = {option for action in parser._actions for option in action.option_strings}
    problems += [
        f"{what} does not know the option {w}."
        for w in argv
        if w.startswith("--") and (w.partition("=")[0] not in known) and w.replace("_", "-") not in known
    ]
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(said):
            return parser.parse_args(argv)
    except (SystemExit, ValueError) as error:
        problems.append(f"{what} refuses its arguments: {said.getvalue().strip().splitlines()[-1:] or error}")
        return None


def vllm(argv: list[str], env: dict[str, str], problems: list[str]) -> None:
    """Ask vLLM's server parser, its connector registry and the code that reads the connector's extra configuration."""
    from vllm.distributed.kv_transfer.kv_connector.factory import KVConnectorFactory
    from vllm.entrypoints.common.cli_args import make_arg_parser
    from vllm.envs import environment_variables
    from vllm.utils.argparse_utils import FlexibleArgumentParser

    found = parsed(make_arg_parser(FlexibleArgumentParser()), argv, "vLLM", problems)
    problems += [f"vLLM does not know the variable {name}." for name in env if name.startswith("VLLM_") and name not in environment_variables]
    config = getattr(found, "kv_transfer_config", None)
    if config is None:
        return
    if config.kv_connector not in KVConnectorFactory._registry:
        problems.append(f"vLLM has no connector {config.kv_connector}.")
    reads = {
        "OffloadingConnector": ("vllm/v1/kv_offload", "vllm/distributed/kv_transfer/kv_connector/v1/offloading"),
        "LMCacheMPConnector": ("vllm/distributed/kv_transfer/kv_connector/v1/lmcache_mp_connector.py",),
        "LMCacheConnectorV1": ("vllm/distributed/kv_transfer/kv_connector/v1/lmcache_integration",),
    }
    extra = config.kv_connector_extra_config
    unknown = sorted(set(extra) - literals(*reads.get(config.kv_connector, ())))
    problems += [f"The connector {config.kv_connector} reads no key {key}." for key in unknown]
    if config.kv_connector == "OffloadingConnector":
        _tiers(extra, problems)


def _tiers(extra: dict[str, Any], problems: list[str]) -> None:
    """Ask vLLM's registries of offloading specs and secondary tiers, and the tier's own signature."""
    from vllm.v1.kv_offload.factory import OffloadingSpecFactory
    from vllm.v1.kv_offload.tiering.factory import SecondaryTierFactory

    if extra.get("spec_name") not in OffloadingSpecFactory._registry:
        problems.append(f"vLLM has no offloading spec {extra.get('spec_name')}.")
    for tier in extra.get("secondary_tiers", []):
        try:
            takes = inspect.signature(SecondaryTierFactory.get_tier_class(tier).__init__).parameters
        except (KeyError, ValueError) as error:
            problems.append(f"vLLM has no secondary tier {tier.get('type')}: {error}")
            continue
        problems += [f"vLLM's tier {tier['type']} takes no {key}." for key in tier if key != "type" and key not in takes]


def lmcache_file(config: dict[str, Any], problems: list[str]) -> None:
    """Let LMCache read the file; an unknown key is only a warning there, and an error here."""
    from lmcache.v1.config import LMCacheEngineConfig

    class Told(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if "nknown" in record.getMessage():
                problems.append(f"LMCache: {record.getMessage()}")

    handler = Told(logging.WARNING)
    loggers = [logging.getLogger(name) for name in list(logging.root.manager.loggerDict) if name.startswith("lmcache")]
    for logger in loggers:
        logger.addHandler(handler)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "lmcache.yaml"
        path.write_text(json.dumps(config), encoding="utf-8")
        found = LMCacheEngineConfig.from_file(str(path))
    for logger in loggers:
        logger.removeHandler(handler)
    for key, value in config.items():
        if getattr(found, key, None) != value:
            problems.append(f"LMCache made {getattr(found, key, None)!r} of {key}, which was given as {value!r}.")
    known = literals("lmcache/v1/storage_backend", "lmcache/v1/config.py", "lmcache/v1/cache_engine.py")
    problems += [f"LMCache reads no key {key} of extra_config." for key in config.get("extra_config") or {} if key not in known]


def lmcache_server(argv: list[str], problems: list[str]) -> None:
    """Ask the parser of `lmcache server`, and the L2 adapter's own reader for its JSON."""
    from lmcache.cli.commands.server import ServerCommand
    from lmcache.v1.distributed.config import parse_args_to_config
    from lmcache.v1.distributed.l2_adapters import config as adapters

    parser = argparse.ArgumentParser()
    ServerCommand().add_arguments(parser)
    found = parsed(parser, argv, "lmcache server", problems)
    if found is None:
        return
    parse_args_to_config(found)
    for text in found.l2_adapter:
        adapter = Asked(json.loads(text))
        adapters._ensure_config_loaded(adapter["type"])
        adapters._L2_ADAPTER_CONFIG_REGISTRY[adapter["type"]].from_dict(adapter)
        adapters.L2AdapterConfigBase._parse_eviction_config(adapter)
        problems += [f"LMCache's L2 adapter {adapter['type']} reads no key {key}." for key in adapter.unread()]


def sglang(argv: list[str], env: dict[str, str], problems: list[str]) -> None:
    """Ask SGLang's server parser, its list of variables, and the Mooncake store for its JSON."""
    from sglang.srt.environ import envs
    from sglang.srt.server_args import ServerArgs

    parser = argparse.ArgumentParser()
    ServerArgs.add_cli_args(parser)
    found = parsed(parser, argv, "SGLang", problems)
    problems += [f"SGLang does not know the variable {name}." for name in env if name not in OTHER_ENV and not hasattr(envs, name)]
    extra = getattr(found, "hicache_storage_backend_extra_config", None)
    if extra and found.hicache_storage_backend == "mooncake":
        from sglang.srt.mem_cache.storage.mooncake_store.mooncake_store import MooncakeStoreConfig

        config = Asked(json.loads(extra))
        MooncakeStoreConfig.load_from_extra_config(config)
        problems += [f"SGLang's Mooncake store reads no key {key}." for key in config.unread()]


def mooncake_master(argv: list[str], problems: list[str]) -> None:
    """Look for each flag's name in the program, which cannot run here: it wants the RDMA libraries."""
    program = (SOURCES / "mooncake" / "mooncake_master").read_bytes()
    names = [word.lstrip("-").partition("=")[0] for word in argv if word.startswith("--")]
    problems += [f"mooncake_master does not know the flag {name}." for name in names if not re.search(rb"\b%s\b" % name.encode(), program)]


def problems_of(rendered: dict[str, Any]) -> list[str]:
    """Ask those whom a rendering concerns."""
    problems: list[str] = []
    for name, content in rendered["files"].items():
        if name.rpartition("/")[2] == "lmcache.yaml":
            lmcache_file(content, problems)
    for process in rendered["processes"]:
        program, *argv = process["argv"]
        if program.endswith("/lmcache"):
            lmcache_server(argv[1:], problems)
        elif program.endswith("/mooncake_master"):
            mooncake_master(argv, problems)
        elif argv[1] == "vllm.entrypoints.openai.api_server":
            vllm(argv[2:], process["env"], problems)
        elif argv[1] == "sglang.launch_server":
            sglang(argv[2:], process["env"], problems)
        else:
            problems.append(f"Nobody here knows the program {program}.")
    return problems


if __name__ == "__main__":
    os.environ.update(VLLM_TARGET_DEVICE="cpu", VLLM_NO_USAGE_STATS="1", LMCACHE_TRACK_USAGE="false")
    sys.path[:0] = [str(SOURCES), str(Path(__file__).parent)]
    import standins

    standins.install()
    answers, sys.stdout = sys.stdout, sys.stderr  # the engines print while they are imported
    print(json.dumps({name: problems_of(rendered) for name, rendered in json.load(sys.stdin).items()}), file=answers)
