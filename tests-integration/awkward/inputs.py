"""Parameters of queries, header fields and cookies; forms; bodies that a handler reads by hand."""

from __future__ import annotations

COLOURS = """
class Colour(enum.Enum):
    RED = "red"
    NONE = "None"
    DASHED = "a-b"
    SPACED = "a b"
    UPPER = "A B"
    EMPTY = ""

class Level(enum.IntEnum):
    LOW = -1
    HIGH = 1

class Only(enum.Enum):
    ONE = "one"
"""

INPUTS = {
    "v1/Query/Optional/Get.py": (
        "async def handler(q: str | None = None, n: int | None = None, size: int = 20,"
        " ratio: float = 0.5, exact: bool = False, at: date = date(2030, 1, 31)) -> None: ..."
    ),
    "v1/Query/Lists/Get.py": (
        "async def handler(ids: list[int], tags: list[str] = [], dates: list[date] | None = None,"
        " kinds: set[str] = set(), keys: tuple[UUID, ...] = ()) -> None: ..."
    ),
    "v1/Query/Enums/Get.py": COLOURS
    + """
async def handler(
    colour: Colour, level: Level = Level.LOW, only: Only = Only.ONE,
    colours: list[Colour] = [Colour.RED], word: Literal["a", "b"] = "a", one: Literal[1] = 1,
    some: Literal["x", 1] = 1, maybe: Colour | None = None,
) -> dict[str, Colour]:
    return {'value': colour}
""",
    "v1/Query/Names/Get.py": """
async def handler(
    a: Annotated[str, Query("class")], b: Annotated[int, Query("$top")] = 1,
    c: Annotated[str, Query("filter[name]")] = "", d: Annotated[str, Query("user-id")] = "",
    user_id: str = "", e: Annotated[str, Query("userId")] = "",
    f: Annotated[str, Query("1st")] = "", g: Annotated[str, Query("größe")] = "",
    self: str = "", client: str = "", url: str = "",
) -> str:
    return a
""",
    "v1/Query/Types/Get.py": """
async def handler(
    price: Decimal, either: int | str = 1, period: timedelta = timedelta(1), start: time = time(8),
    moment: datetime = datetime(2030, 1, 1, tzinfo=timezone.utc), prices: list[Decimal] = [],
    least: Decimal = Decimal("0.10"), key: UUID = UUID(int=1), limited: Annotated[
        int, pydantic.Field(ge=1, le=100, description="At 'most' \\"100\\"")] = 10,
) -> dict[str, Decimal]:
    return {'value': price}
""",
    "v1/Query/Model/Get.py": """
@dataclass
class Filter:
    q: str
    page: int = 1
    tags: list[str] = field(default_factory=list)

async def handler(filter: Annotated[Filter, Query()]) -> Filter:
    return filter
""",
    "v1/Fields/Get.py": """
async def handler(
    x_token: Annotated[str, Header()], x_count: Annotated[int, Header()] = 1,
    class_: Annotated[str, Header("Class")] = "", session: Annotated[str | None, Cookie()] = None,
    size: Annotated[int, Cookie("a-size")] = 3, accept: Annotated[str, Header()] = "*/*",
) -> str:
    return x_token
""",
    "v1/Form/Fields/Post.py": COLOURS
    + """
async def handler(
    title: Annotated[str, Form()], colour: Annotated[Colour, Form()] = Colour.RED,
    tags: Annotated[list[str], Form()] = [], count: Annotated[int | None, Form()] = None,
    ids: Annotated[list[int], Form("id list")] = [],
) -> str:
    return title
""",
    "v1/Form/Files/Post.py": """
async def handler(
    image: UploadFile, pages: list[UploadFile], more: list[UploadFile] = [],
    other: Annotated[UploadFile | None, File("class")] = None, title: Annotated[str, Form()] = "",
    at: Annotated[date | None, Form()] = None,
) -> dict[str, int]:
    return {'value': image.size}
""",
    "v1/Form/File/Post.py": "async def handler(file: UploadFile) -> None: ...",
    "v1/Form/Model/Post.py": """
class Contact(pydantic.BaseModel):
    name: str
    age: int = 3
    tags: list[str] = []

async def handler(contact: Annotated[Contact, Form()]) -> Contact:
    return contact
""",
    "v1/Hand/Json/Post.py": "async def handler(request) -> None:\n    await request.json()",
    "v1/Hand/Form/Post.py": "async def handler(request) -> None:\n    await request.form()",
    "v1/Hand/Files/Post.py": "async def handler(request) -> None:\n    await request.files()",
    "v1/Hand/Body/Post.py": "async def handler(request) -> None:\n    await request.body()",
    "v1/Hand/Stream/Put.py": (
        "async def handler(request) -> None:\n    async for _ in request.stream(): ..."
    ),
    "v1/Hand/Both/Post.py": (
        "async def handler(request) -> None:\n"
        "    await request.json() if request.query else await request.form()"
    ),
    "v1/Secured/Bearer/Get.py": "@secured('bearer')\nasync def handler() -> None: ...",
    "v1/Secured/Optional/Get.py": (
        "@secured('basic', optional=True)\nasync def handler() -> None: ..."
    ),
    "v1/Secured/Both/Get.py": """
@secured({"type": "apiKey", "in": "header", "name": "X-Api-Key"}, name="api key".replace(" ", "_"))
async def check_key(x_api_key: Annotated[str, Header()] = ""): ...

@secured({"type": "oauth2", "flows": {"clientCredentials": {
    "tokenUrl": "/token", "scopes": {"read:all": "Read"}}}}, name="oauth", scopes=["read:all"])
async def check_token(): ...

async def handler(key=Depends(check_key), token=Depends(check_token)) -> None: ...
""",
}
