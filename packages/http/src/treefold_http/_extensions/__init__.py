"""Extensions: the values they return, and the calls of all extensions of an application."""
