"""How two types relate: which of them has all values of the other, and a value that shows it."""
