"""The service around the judgement."""

__version__ = "0.1.0"  # as in pyproject.toml
