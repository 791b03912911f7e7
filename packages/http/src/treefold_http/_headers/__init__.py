"""Values of header fields: text to data and back, each checked where it is made."""
