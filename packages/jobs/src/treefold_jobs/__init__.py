"""Jobs: calls kept in PostgreSQL by PgQueuer, and run by the processes of `treefold worker`."""
