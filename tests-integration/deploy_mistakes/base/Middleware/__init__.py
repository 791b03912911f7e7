from treefold.middleware import ProxyHeaders, SecurityHeaders, Sessions, TrustedHosts

middlewares = [
    ProxyHeaders(["127.0.0.1"]),
    TrustedHosts(["api.example.com"]),
    SecurityHeaders(),
    Sessions(store="redis"),
]
