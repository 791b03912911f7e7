"""Types of an API as data: nodes, their JSON form, and the values that a type has."""
