async def handler(request):
    return {"status": "ok"}
