"""Arrangements: applications drawn by a seed, and an oracle that knows who may see what.

Read in this order: `arrangement` (what can be drawn), `drawing` (how), `targets` and `clients`
(what is asked, and by whom), `oracle` (who may see what: computed from the arrangement alone, it
imports nothing of the framework), `project` (the same arrangement as files), `traffic` (the
requests), `judging` (responses held against the oracle), `running` and `counting`. By hand:
`hatch run arrangements --seed 7`.
"""
