"""JSON in and out, with the types of pydantic where it is installed."""
