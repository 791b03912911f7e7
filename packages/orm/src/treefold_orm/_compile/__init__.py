"""From node trees to SQL text and slots for parameters. Pure: no I/O, no clock, no global state."""
