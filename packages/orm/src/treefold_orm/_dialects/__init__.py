"""The SQL of the two databases: pieces of text, the contract of a dialect and both dialects."""
