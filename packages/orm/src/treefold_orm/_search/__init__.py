"""Full text search: indexes over columns, queries in words, ranks."""
