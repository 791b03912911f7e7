"""Names in paths: parameters of every spelling, keywords, other scripts, and other versions."""

from __future__ import annotations

TEXT = "async def handler(request) -> str:\n    return request.path"

PATHS = {
    # one parameter, whatever its name seems to promise
    "v1/Files/[...path]/Get.py": TEXT,
    "v1/Files/[...path]/Put.py": "async def handler(request) -> str:\n    await request.body()\n"
    "    return request.path",
    "v1/Files/[...path]/Versions/[...version]/Get.py": TEXT,
    "v1/Shops/[shop]/Orders/[order]/Lines/[line]/Get.py": (
        "async def handler(shop: int, order: UUID, line: date) -> dict[str, str]:\n"
        "    return {'line': str(line)}"
    ),
    "v1/Twice/[id]/Again/[id]/Get.py": TEXT,
    "v1/Side/[a]/[b]/[c]/Get.py": "async def handler(c: int, a: str) -> None: ...",
    "v1/Class/[class]/Get.py": TEXT,
    "v1/Import/[from]/[import]/Get.py": TEXT,
    "v1/Self/[self]/Get.py": "async def handler(self: int) -> None: ...",
    "v1/Body/[body]/[headers]/Get.py": TEXT,
    "v1/Reserved/[client]/[kwargs]/[url]/Post.py": (
        "@dataclass\nclass Note:\n    text: str\n\n"
        "async def handler(note: Note, request, params: str = '', headers: str = '', json: int = 1,"
        " cookies: str = '', response: str = '') -> Note:\n    return note"
    ),
    "v1/Spaced/[two words]/Get.py": TEXT,
    "v1/Dashed/[user-id]/Get.py": TEXT,
    "v1/Alike/[user.id]/[user_id]/[userId]/[user-id]/Get.py": TEXT,
    "v1/Camel/[userId]/Get.py": (
        "async def handler(userId: str, user_id: int = 1, USER_ID: int = 2) -> None: ..."
    ),
    "v1/One name/[id]/Get.py": (
        "async def handler(id: int, a: Annotated[str, Query('id')] = '',"
        " b: Annotated[str, Header('id')] = '', c: Annotated[str, Cookie('id')] = '') -> None: ..."
    ),
    "v1/Digits/[1]/[2nd]/Get.py": TEXT,
    "v1/Under/[_]/[__init__]/Get.py": TEXT,
    # static folders
    "v1/None/Get.py": TEXT,
    "v1/True/Get.py": TEXT,
    "v1/print/Get.py": TEXT,
    "v1/Async/Delete.py": "async def handler() -> None: ...",
    "v1/get-user/Get.py": TEXT,
    "v1/GetUser/Get.py": TEXT,
    "v1/get_user/Get.py": TEXT,
    "v1/123/Get.py": TEXT,
    "v1/a.b/Get.py": TEXT,
    "v1/A&B+C/Get.py": TEXT,
    "v1/per%20cent/Get.py": TEXT,
    "v1/Straße/Get.py": TEXT,
    "v1/書籍/Get.py": TEXT,
    "v1/書籍/[番号]/Get.py": "async def handler(番号: int) -> None: ...",
    "v1/Größe/[größe]/Get.py": "async def handler(größe: int, breite: int = 1) -> None: ...",
    "v1/Models/Get.py": TEXT,
    "v1/Client/Get.py": TEXT,
    # methods
    "v1/Methods/Head.py": "async def handler() -> None: ...",
    "v1/Methods/Options.py": "async def handler() -> None: ...",
    "v1/Methods/Patch.py": "async def handler(data: Annotated[dict, Body()]) -> None: ...",
    "v1/Methods/Delete.py": "async def handler(data: Annotated[list[int], Body()]) -> None: ...",
    # words of the module
    "v1/Words/Old/Get.py": (
        "deprecated = True\ntags = []\nsummary = 'A \" and \\\\'\ndescription = '\"\"\" {{ x }}'\n"
        + TEXT
    ),
    "v1/Words/Id/Get.py": "operation_id = 'get.it-2.x'\ntags = ['a b/c', 'class']\n" + TEXT,
    "v1/Words/Docstring/Get.py": (
        'async def handler() -> str:\n    \'Say """ and \\\\n.\\n\\n    # */ {{ x }} {% y %}\'\n'
        "    return ''"
    ),
    # other versions
    "v2/Get.py": TEXT,
    "v2/Words/Id/Get.py": "operation_id = 'get.it-2.x'\n" + TEXT,
    "v2/[id]/Get.py": "async def handler(id: int) -> dict[str, int]:\n    return {'value': id}",
    "v10/Empty/Segments/Get.py": TEXT,
    "v01/Get.py": TEXT,
}
