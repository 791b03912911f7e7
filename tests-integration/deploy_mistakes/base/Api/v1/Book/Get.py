from treefold.cache import cached


@cached(60)
async def handler() -> list[str]:
    return ["The Dispossessed"]
