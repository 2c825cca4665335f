"""Our driver and three others against one server of known truth, side by side: `make bench-client`."""
