"""Readers of benchmark clients: one module a tool, one definition of every figure (see figures.py)."""
