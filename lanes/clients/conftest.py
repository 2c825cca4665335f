"""This lane says NOT RUN as the tests do."""

from __future__ import annotations

from tests.needs import pytest_configure, pytest_runtest_setup, pytest_terminal_summary

__all__ = ["pytest_configure", "pytest_runtest_setup", "pytest_terminal_summary"]
