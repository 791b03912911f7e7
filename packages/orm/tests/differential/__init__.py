"""Random queries that mix types, asked of this ORM and of Django, and their answers compared.

`tables` holds the models of both and the rows, `trees` random expressions as data, `writing` turns
them into expressions of either ORM, and `queries` into queries.
"""
