from treefold.middleware import RateLimit, SecurityHeaders, Sessions, under

middlewares = [
    SecurityHeaders(),
    Sessions(store="database"),
    under("/*/sessions", RateLimit("60/minute")),
]
