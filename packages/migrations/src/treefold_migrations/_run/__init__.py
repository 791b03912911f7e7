"""Running a schedule: the lock, the transactions, and the functions of Python."""
