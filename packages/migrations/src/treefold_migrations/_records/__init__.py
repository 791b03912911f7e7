"""What a database says of its migrations: the records, the journal, and how they are read."""
