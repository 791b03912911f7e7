"""Models in bodies and responses: every kind, names that clash, recursion, generics, unions."""

from __future__ import annotations

ECHO = "\nasync def handler(item: {0}) -> {0}:\n    return item\n"

MODELS = {
    "Dataclass": "@dataclass\nclass Item:\n    name: str\n    size: int = 1",
    "Pydantic": "class Item(pydantic.BaseModel):\n    name: str\n    weight: float = 1.5",
    "Msgspec": "class Item(msgspec.Struct):\n    name: str\n    tags: list[str] = []",
    "Typed": "class Item(TypedDict):\n    name: str\n    note: NotRequired[str]",
}
"""Four libraries, and four classes of one name."""

SCALARS = """
    moment: datetime
    day: date
    clock: time
    period: timedelta
    key: UUID
    price: Decimal
    data: bytes
    maybe: datetime | None = None
    least: Decimal = Decimal("0.10")
    start: date = date(2030, 1, 31)
"""

BODIES = {
    **{
        f"v1/Models/{library}/Post.py": source + ECHO.format("Item")
        for library, source in MODELS.items()
    },
    **{
        f"v1/Scalars/{library}/Post.py": head + SCALARS + ECHO.format("Values")
        for library, head in (
            ("Dataclass", "@dataclass\nclass Values:"),
            ("Pydantic", "class Values(pydantic.BaseModel):"),
            ("Msgspec", "class Values(msgspec.Struct):"),
        )
    },
    "v2/Models/Dataclass/Post.py": (
        "@dataclass\nclass Item:\n    name: str\n    height: int" + ECHO.format("Item")
    ),
    "v1/Unions/Plain/Post.py": """
@dataclass
class Cat:
    lives: int

@dataclass
class Dog:
    tricks: list[str]

async def handler(pet: Cat | Dog) -> Cat | Dog:
    return pet
""",
    "v1/Unions/Discriminated/Post.py": """
class Circle(pydantic.BaseModel):
    kind: Literal["circle"]
    radius: float

class Square(pydantic.BaseModel):
    kind: Literal["square"] = "square"
    side: float

Shape = Annotated[Circle | Square, pydantic.Field(discriminator="kind")]

class Drawing(pydantic.BaseModel):
    main: Shape
    others: list[Shape] = []

async def handler(drawing: Drawing) -> Shape:
    return drawing.main
""",
    "v1/Unions/Tagged/Post.py": """
class Push(msgspec.Struct, tag="push"):
    size: int

class Pull(msgspec.Struct, tag="pull"):
    number: int

async def handler(event: Push | Pull) -> list[Push | Pull]:
    return [event]
""",
    "v1/Unions/Scalars/Post.py": """
@dataclass
class Mixed:
    value: int | str | bool | None
    values: list[int | str]
    dates: date | datetime | str = ""
    nested: list[list[int]] | dict[str, int] | None = None
"""
    + ECHO.format("Mixed"),
    "v1/Recursive/Dataclass/Post.py": """
@dataclass
class Node:
    value: int
    left: "Node | None" = None
    children: "list[Node]" = field(default_factory=list)
"""
    + ECHO.format("Node"),
    "v1/Recursive/Pydantic/Post.py": """
class Folder(pydantic.BaseModel):
    files: "list[Entry]" = []

class Entry(pydantic.BaseModel):
    name: str
    parent: Folder | None = None
    links: "dict[str, Entry]" = {}
"""
    + ECHO.format("Folder"),
    "v1/Recursive/Msgspec/Post.py": """
class Tree(msgspec.Struct):
    branches: "list[Tree]" = []
    root: "Tree | None" = None
"""
    + ECHO.format("Tree"),
    "v1/Generic/Dataclass/Post.py": """
T = TypeVar("T")

@dataclass
class Row:
    id: int

@dataclass
class Page(Generic[T]):
    items: list[T]
    next: str | None = None

async def handler(page: Page[Row]) -> Page[int]:
    return Page([row.id for row in page.items])
""",
    "v1/Generic/Pydantic/Post.py": """
T = TypeVar("T")

class Row(pydantic.BaseModel):
    id: UUID

class Page(pydantic.BaseModel, Generic[T]):
    items: list[T]
    total: int = 0

async def handler(page: Page[Row]) -> Page[dict[str, Row]]:
    return Page[dict[str, Row]](items=[])
""",
    "v1/Tables/Post.py": """
class Unit(enum.Enum):
    CM = "cm"
    INCH = '"'

@dataclass
class Cell:
    text: str

@dataclass
class Tables:
    by_number: dict[int, Cell]
    by_unit: dict[Unit, int]
    by_key: dict[UUID, list[Cell]]
    by_word: dict[Literal["a", "b"], int]
    nested: dict[str, dict[str, Cell | None]]
    anything: dict[str, Any]
    open: dict
    free: Any = None
    rest: object = None
"""
    + ECHO.format("Tables"),
    "v1/Tables/Put.py": "async def handler(item: Annotated[dict[int, float], Body()]) ->"
    " dict[int, float]:\n    return item",
    "v1/Tuples/Post.py": """
class Point(NamedTuple):
    x: int
    y: str

@dataclass
class Tuples:
    pair: tuple[int, str]
    many: tuple[int, ...]
    point: Point
    none: tuple[()] = ()
    unique: set[str] = field(default_factory=set)
    frozen: frozenset[int] = frozenset()
"""
    + ECHO.format("Tuples"),
    "v1/Literals/Post.py": """
@dataclass
class Literals:
    const: Literal["x"]
    one: Literal[1]
    yes: Literal[True]
    mixed: Literal["a", 1, None]
    words: list[Literal["None", "class", "a b", "a-b"]]
    number: Literal[-1, 0, 1] = 0
"""
    + ECHO.format("Literals"),
    "v1/Enums/Post.py": """
class Size(enum.Enum):
    SMALL = 0.5
    BIG = 1.5

class Mixed(enum.Enum):
    TEXT = "text"
    NUMBER = 1

class Empty(enum.Enum):
    NOTHING = ""
    SOMETHING = "something"

class Flags(enum.Flag):
    A = 1
    B = 2

class Access(str, enum.Enum):
    READ_ = "read"
    READ = "READ"
    SLASH = "a/b"

@dataclass
class Enums:
    size: Size
    mixed: Mixed
    flags: Flags
    access: Access = Access.READ
    empty: Empty | None = None
    all: list[Empty] = field(default_factory=list)
    by_default: Empty = Empty.NOTHING
"""
    + ECHO.format("Enums"),
    "v1/Names/Fields/Post.py": """
class Odd(pydantic.BaseModel):
    class_: str = pydantic.Field(alias="class")
    from_: str = pydantic.Field("x", alias="from")
    userId: int = 1
    user_id: int = 2
    dashed: str = pydantic.Field("x", alias="a-b")
    under: str = pydantic.Field("x", alias="a_b")
    digit: str = pydantic.Field("x", alias="1st")
    dollar: str = pydantic.Field("x", alias="$ref")
    kind: str = pydantic.Field("x", alias="@kind")
    other: str = pydantic.Field("x", alias="größe")
    quoted: str = pydantic.Field("x", alias='x"y')
    to_dict: str = "x"
    additional_properties: str = "x"
    d: int = 1
    src_dict: int = 1
    properties: dict[str, int] = {}
    type: str = "x"
    items: list[int] = []
"""
    + ECHO.format("Odd"),
    "v1/Names/Classes/Post.py": """
@dataclass
class Client:
    name: str

@dataclass
class File:
    name: str

@dataclass
class HTTPItem:
    name: str

@dataclass
class HttpItem:
    size: int

@dataclass
class User_Item:
    name: str

@dataclass
class UserItem:
    size: int

@dataclass
class Holder:
    client: Client
    file: File

@dataclass
class Named:
    a: HTTPItem
    b: HttpItem
    c: User_Item
    d: UserItem

async def handler(given: Named) -> Holder:
    return Holder(Client(""), File(""))
""",
    "v1/Names/Problem/Get.py": """
@dataclass
class Problem:
    reason: str

async def handler(n: int) -> Problem:
    raise NotFound("No")
""",
    "v1/Defaults/Post.py": """
@dataclass
class Defaults:
    text: str = "\\"quoted\\" \\\\ 'twice' {x}\\n"
    number: float = math.inf
    nothing: float = math.nan
    table: dict[str, int] = field(default_factory=lambda: {"a": 1})
    many: list[int] = field(default_factory=lambda: [1])
    yes: bool = True
    zero: int = 0
    negative: int = -1
    maybe: str | None = "x"
    moment: datetime = datetime(2030, 1, 1)
    key: UUID = UUID(int=0)
    data: bytes = b"abc"
"""
    + ECHO.format("Defaults"),
    "v1/Differs/Post.py": """
class Account(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(json_schema_extra={"examples": [{"name": "Ann"}]})
    name: str = pydantic.Field(title="The name", description="As *shown*", examples=["Ann"])
    born: date | None = None
    secret: str = pydantic.Field("", exclude=True)

    @pydantic.computed_field
    @property
    def age(self) -> int:
        return 1
"""
    + ECHO.format("Account"),
    "v1/Shapes/Optional/Post.py": """
@dataclass
class Patch:
    name: str | None = None

async def handler(patch: Patch | None = None) -> Patch | None:
    return patch
""",
    "v1/Shapes/List/Post.py": """
@dataclass
class Entry:
    name: str

async def handler(entries: list[Entry]) -> list[list[Entry]]:
    return [entries]
""",
    "v1/Shapes/Scalar/Post.py": (
        "async def handler(n: Annotated[int, Body()]) -> dict[str, bool]:\n    return {'n': n > 1}"
    ),
    "v1/Shapes/Anything/Post.py": (
        "async def handler(n: Annotated[Any, Body()]) -> object:\n    return n"
    ),
    "v1/Shapes/Nullable/Post.py": (
        "async def handler(n: Annotated[int | None, Body()]) -> list[int | None]:\n    return [n]"
    ),
    "v1/Shapes/Empty/Post.py": "@dataclass\nclass Nothing: ...\n" + ECHO.format("Nothing"),
}
