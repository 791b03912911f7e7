"""The command `serve`: its options, the settings that the server gets, its worker processes."""
