"""The schema that a history of migrations leads to, as light structures."""
