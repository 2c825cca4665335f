"""`make scale`: many soaks at once on fake targets, moved by the real service; what one of them costs must not grow with their number."""
