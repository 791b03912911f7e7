async def handler(request) -> dict[str, str]:
    return {"status": "ok"}
