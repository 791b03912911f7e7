from treefold.middleware import CORS, SecurityHeaders

middlewares = [
    SecurityHeaders(),
    CORS(["*"], allow_headers=["Content-Type", "Authorization"]),
]
