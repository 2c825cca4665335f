"""The chaos lane: whole attempts under faults, and what the world outside saw of them. See docs/chaos.md."""
