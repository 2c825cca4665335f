"""Start the engine: `python3 -m lab_engine --config FILE`. It serves until SIGTERM or SIGINT."""

from __future__ import annotations

import argparse
import asyncio
import gc
import signal
import sys
import time

from . import __version__
from .config import Config, ConfigError, load
from .engine import Engine
from .server import Server


async def serve(config: Config) -> None:
    """Serve until a signal ends it; writes that are under way are finished."""
    engine = Engine(config, time.monotonic())
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    listener = await Server(engine).listen(config.host, config.port)
    engine.defects.start_read_ahead()
    sys.setswitchinterval(0.0005)  # a thread with KV in hand hands over within half a millisecond
    gc.collect()
    gc.freeze()  # what is here now stays; collections look at requests only
    print(f"lab engine {__version__}: {config.model} on http://{config.host}:{Server.port_of(listener)}", flush=True)
    await stop.wait()
    listener.close()
    engine.close()


def main() -> int:
    """Return 0 after a clean end, 64 for a configuration that cannot be used, 70 when the port cannot be had."""
    parser = argparse.ArgumentParser(prog="lab_engine", description=__doc__)
    parser.add_argument("--config", required=True, help="the JSON file that says what to model")
    parser.add_argument("--version", action="version", version=__version__)
    arguments = parser.parse_args()
    try:
        config = load(arguments.config)
    except ConfigError as error:
        print(f"lab engine: {error}", file=sys.stderr)
        return 64
    try:
        asyncio.run(serve(config))
    except OSError as error:
        print(f"lab engine: cannot serve on {config.host}:{config.port}: {error}", file=sys.stderr)
        return 70
    return 0


if __name__ == "__main__":
    sys.exit(main())
