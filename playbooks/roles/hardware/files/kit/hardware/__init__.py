"""The hardware kit: RoCE fabric, NVMe-oF connections, RAID and file systems of a target, and the wiping of a unit on loan.

`python3 -I hardware.pyz PART VERB < order.json` with PART one of fabric, array, volume, wipe and VERB one of apply, plan, remove,
plan-remove, show (the plans change nothing and say what they would). Python 3.8,
standard library only. What it changes it writes down first, below <root>/state, so that `remove` restores what was there.
"""
