"""The probe: what Quadgate puts on a target. Standard library of Python 3.8 and up, shipped as one zipapp, nothing installed.

It runs detached jobs, drives the workload, takes telemetry, empties page caches and brings evidence back. It measures; it never judges.
"""

VERSION = "0.1.0"
