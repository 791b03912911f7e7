"""Responses: every form of annotation, tables of responses, errors, files and streams."""

from __future__ import annotations

ROW = "@dataclass\nclass Row:\n    id: int\n    name: str = ''\n\n"

RESPONSES = {
    "v1/Answers/None/Get.py": "async def handler() -> None: ...",
    "v1/Answers/Nothing/Get.py": "async def handler(): ...",
    "v1/Answers/Any/Get.py": "async def handler() -> Any:\n    return 1",
    "v1/Answers/Response/Get.py": "async def handler() -> Response:\n    return Response.text('x')",
    "v1/Answers/Text/Get.py": "async def handler() -> str:\n    return 'x'",
    "v1/Answers/Bytes/Get.py": "async def handler() -> bytes:\n    return b'x'",
    "v1/Answers/Number/Get.py": "async def handler() -> list[float]:\n    return [1.5]",
    "v1/Answers/Table/Get.py": "async def handler() -> dict:\n    return {}",
    "v1/Answers/List/Get.py": "async def handler() -> list:\n    return []",
    "v1/Answers/Maybe/Get.py": ROW + "async def handler() -> Row | None:\n    return None",
    "v1/Answers/Either/Get.py": ROW + "async def handler() -> Row | str | bytes:\n    return 'x'",
    "v1/Answers/Status/Post.py": (
        ROW + "async def handler() -> tuple[Row, Literal[201]]:\n    return Row(1), 201"
    ),
    "v1/Answers/Statuses/Post.py": (
        ROW + "async def handler() -> tuple[Row, Literal[200, 201, 202], dict[str, str]] |"
        " tuple[None, Literal[204]]:\n    return None, 204"
    ),
    "v1/Answers/Unknown/Post.py": (
        ROW + "async def handler() -> tuple[Row, int]:\n    return Row(1), 203"
    ),
    "v1/Answers/Code/Post.py": ROW + "status_code = 202\nasync def handler() -> Row:\n"
    "    return Row(1)",
    "v1/Answers/Model/Get.py": ROW + "response_model = list[Row]\nasync def handler():\n"
    "    return [{'id': 1}]",
    "v1/Answers/Scalars/Get.py": (
        "async def handler() -> dict[str, tuple[date, Decimal, UUID, bytes | None]]:\n    return {}"
    ),
    "v1/Files/Csv/Get.py": (
        "async def handler() -> FileResponse:\n    return FileResponse('report.csv')"
    ),
    "v1/Files/Unknown/[name]/Get.py": (
        "async def handler(name: str) -> FileResponse:\n    return FileResponse(name)"
    ),
    "v1/Files/Image/Get.py": (
        "async def handler() -> Response | FileResponse:\n    return Response.file('a.png')"
    ),
    "v1/Files/Said/Get.py": (
        "responses = {200: {'media_type': 'application/pdf', 'description': 'It'}}\n"
        "async def handler(request) -> FileResponse:\n    return FileResponse(request.path)"
    ),
    "v1/Streams/Chunks/Get.py": (
        "async def handler() -> StreamingResponse:\n    return StreamingResponse(iter('ab'))"
    ),
    "v1/Streams/Bytes/Get.py": "async def handler() -> AsyncIterator[bytes]:\n    yield b'x'",
    "v1/Streams/Lines/Get.py": ROW + "async def handler() -> AsyncIterator[Row]:\n    yield Row(1)",
    "v1/Streams/Events/Get.py": (
        ROW + "response_model = Row\nasync def events():\n    yield Event(data=Row(1))\n\n"
        "async def handler() -> EventStream:\n    return EventStream(events())"
    ),
    "v1/Streams/Either/Get.py": (
        ROW + "async def handler() -> Row | FileResponse:\n    return Row(1)"
    ),
    "v1/Errors/Raised/Get.py": """
async def handler(n: int) -> None:
    if n:
        raise Conflict("No")
    raise HTTPError(418, "No")
""",
    "v1/Errors/Table/Get.py": ROW
    + """
@dataclass
class Failure:
    reason: str

responses = {
    200: {"description": 'A "row"', "headers": {"X-Count": int, "X-At": datetime, "ETag": "Tag"},
          "example": {"id": 1}},
    201: {"model": Row, "media_type": "application/hal+json"},
    202: {"media_type": "text/csv"},
    203: {"model": Any},
    206: bytes,
    304: "Not changed",
    400: Failure,
    404: "No such row",
    409: {"model": Failure | Row, "examples": {"one": {"value": {"reason": "x"}}}},
    422: {"model": list[Failure]},
    "4XX": "Another",
    "5XX": {"model": str},
    "default": {"description": "Anything else", "model": Failure},
}

async def handler(n: int = 1) -> Row:
    return Row(n)
""",
}
