"""Makes the probe's own package importable."""

import tests.unit.probe.kit  # noqa: F401
