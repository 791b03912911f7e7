"""Messages of HTTP as data: the request line, fields by name, addresses, limits and errors."""
