from Services.chat import rooms
from treefold import WebSocket


async def handler(websocket: WebSocket, room: str):
    await websocket.accept()
    async with rooms.joined(room, websocket):
        async for text in websocket.iter_text():
            await rooms.broadcast(room, text)
