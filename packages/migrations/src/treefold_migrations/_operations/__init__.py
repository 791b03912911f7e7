"""The operations that a migration is made of."""
