"""What a plan can decide before it is sealed: chances of each verdict of G3, thin margins, run pairs needed, and what they cost.

Every trial is judged by the rules of the gate itself (gates.rules, gates.g3.deciding); only what is measured is drawn. Needs numpy, which the
judge does not: nothing of the judge imports this package.
"""
