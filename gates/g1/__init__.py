"""The parts of gate G1: order, packs, inventory, and its checks by subject."""
