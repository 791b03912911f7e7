"""Responses: values, streams, events, files, and the model that an answer is checked against."""
