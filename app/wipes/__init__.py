"""The wipe of a unit on loan: ordered by serial number, approved by both parties, carried out once, kept by its records (抹除)."""
