"""How each kind of step is moved: one small module a kind, each with `move(ctx) -> Outcome`."""
