"""One project of one to four versions, drawn by lot: handlers, services, packages and marks."""

import random
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import dedent

FOLDERS = ("User", "user", "Book", "[id]", "[key]", "Me", "Legacy", "Get")
METHODS = ("Get.py", "GET.py", "Put.py", "Delete.py", "Post.py", "Ws.py")

SERVICE = """
count = [0]

def hit():
    count[0] += 1
    return [{token!r}, __name__, count[0]]
"""
HANDLER = """
{imports}

async def handler(request):
    return {{
        "token": {token!r},
        "module": __name__,
        "params": request.path_params,
        "services": [hit() for hit in hits],
        "package": mark,
    }}
"""
SOCKET = """
async def handler(websocket):
    await websocket.accept()
"""


@dataclass
class RandomTree:
    """A project on the disk.

    Attributes:
        root: its folder.
        bases: by version, the version that it inherits from.
        unserved: versions that are only bases.
        is_valid: False where versions inherit in a circle or from one that does not exist.
    """

    root: Path
    lot: random.Random
    bases: dict[str, str] = field(default_factory=dict[str, str])
    unserved: set[str] = field(default_factory=set[str])
    is_valid: bool = True
    places: list[tuple[str, ...]] = field(default_factory=list[tuple[str, ...]])

    @property
    def versions(self) -> list[str]:
        return sorted(entry.name for entry in (self.root / "Api").iterdir())

    def read_text(self, file: str) -> str:
        return (self.root / "Api" / file).read_text()


def draw_tree(root: Path, seed: int) -> RandomTree:
    """Write the project of a seed."""
    lot = random.Random(seed)
    tree = RandomTree(root, lot)
    names = [f"v{number}" for number in range(1, lot.randint(1, 4) + 1)]
    order = lot.sample(names, len(names))  # v1 may inherit from v2 as well as the reverse
    for index, version in enumerate(order):
        (root / "Api" / version).mkdir(parents=True)
        if index and lot.random() < 0.9:
            tree.bases[version] = order[lot.randrange(index)]
    for version in order:
        _draw_files(tree, version)
    for version in order:
        if version in tree.bases:
            _draw_marks(tree, version)
    _spoil_bases(tree, seed)
    for version in order:
        lines: list[str] = []
        if version in tree.bases:
            lines.append(f'inherits = "{tree.bases[version]}"')
        if lot.random() < 0.1:
            tree.unserved.add(version)
            lines.append("serve = false")
        if lines or lot.random() < 0.2:
            _write(tree, f"{version}/version.toml", "\n".join(lines))
    return tree


def _draw_files(tree: RandomTree, version: str) -> None:
    lot = tree.lot
    for number in range(lot.randint(2, 9)):
        if tree.places and lot.random() < 0.6:  # mostly where another version has files too
            place = lot.choice(tree.places)
        else:
            place = tuple(lot.choice(FOLDERS) for _ in range(lot.randint(0, 3)))
            tree.places.append(place)
        folder, token = "/".join((version, *place)), f"{version}:{number}"
        if lot.random() < 0.45:
            _write(tree, f"{folder}/Services/names.py", SERVICE.format(token=token))
        if lot.random() < 0.15:
            _write(tree, f"{folder}/__init__.py", f"MARK = {token!r}\n")
        if lot.random() < 0.15:
            _write(tree, f"{folder}/names.py", SERVICE.format(token=token))
        if lot.random() < 0.8:
            name = lot.choice(METHODS)
            source = SOCKET if name == "Ws.py" else _write_handler(tree, place, token)
            _write(tree, f"{folder}/{name}", source)


def _write_handler(tree: RandomTree, place: tuple[str, ...], token: str) -> str:
    lines = ["hits, mark = [], None"]
    for up in range(len(place) + 1):
        if tree.lot.random() < 0.5:
            module = f"{'.' * (up + 1)}{tree.lot.choice(('Services.names', 'names'))}"
            line = f"    from {module} import hit"
            if tree.lot.random() < 0.1:  # a service that is not there breaks the file
                lines.append(f"{line.strip()}\nhits.append(hit)")
            else:
                lines.append(f"try:\n{line}\n    hits.append(hit)\nexcept ImportError: pass")
    lines.append("try:\n    from . import MARK as mark\nexcept ImportError: pass")
    return HANDLER.format(imports="\n".join(lines), token=token)


def _draw_marks(tree: RandomTree, version: str) -> None:
    lot, api = tree.lot, tree.root / "Api"
    bases = [version]
    while bases[-1] in tree.bases:
        bases.append(tree.bases[bases[-1]])
    known = sorted(
        path.relative_to(api / base)
        for base in bases[1:]
        for path in (api / base).rglob("*")
        if path.is_dir() or path.suffix == ".py"
    )
    for path in lot.sample(known, min(len(known), lot.randint(0, 4))):
        name = path.name.removesuffix(".py")
        if name.startswith("[") and lot.random() < 0.5:
            name = "[other]"
        elif "Services" not in path.parts and lot.random() < 0.2:
            name = name.swapcase()
        _write(tree, "/".join((version, *path.parts[:-1], f"{name}.gone")), "")


def _spoil_bases(tree: RandomTree, seed: int) -> None:
    if seed % 10 == 4:
        tree.bases[tree.lot.choice(tree.versions)] = "v77"
        tree.is_valid = False
    elif seed % 10 == 9:
        first, *rest = tree.versions
        for version, base in zip([first, *rest], [*rest, first], strict=True):
            tree.bases[version] = base
        tree.is_valid = False


def _write(tree: RandomTree, file: str, text: str) -> None:
    path = tree.root / "Api" / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(dedent(text))
