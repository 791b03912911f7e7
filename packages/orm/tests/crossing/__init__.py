"""The table that crosses every expression with every pair of field types, and its oracle.

`kinds` and `oracle` state the meaning of types and values in plain Python, `values` holds the rows,
`forms` the ways an operand may be written, the `cases_*` modules the table, and `runner` asks both
engines. No module here looks into the package: it is checked from outside.
"""
