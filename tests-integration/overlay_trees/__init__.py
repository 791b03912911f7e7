"""Random trees of versions that inherit, and the copies that they must answer like.

`random_tree` draws a project from a seed. `copies` makes the copies on the disk, file by file, from
the rules of the guide on versions; it shares no code with the router.
"""
