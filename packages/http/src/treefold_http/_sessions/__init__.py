"""Sessions: values that the server keeps for a client between requests, and tokens against CSRF."""
