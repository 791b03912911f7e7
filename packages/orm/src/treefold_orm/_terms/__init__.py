"""Terms: the expressions of a query, a constraint or an index as callers write them, as data."""
