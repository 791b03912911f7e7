"""Version 2 says prices in cents and currency; version 1 keeps its floating point."""


def price(cents: int) -> dict[str, int | str]:
    return {"amount": cents, "currency": "EUR"}
