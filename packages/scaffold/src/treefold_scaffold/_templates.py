"""The files a template writes, as text.

Constants only. The single replaced token is PROJECT_NAME, by plain replacement of a name already
checked; handler bodies carry no name at all, so nothing in them has to be quoted and a copied
version never tells of the old one.
"""

from collections.abc import Mapping
from types import MappingProxyType

PROJECT_NAME = "__PROJECT_NAME__"

STATIC_HANDLER = """\
async def handler(request):
    return {"status": "ok"}
"""

DYNAMIC_HANDLER = """\
async def handler(request):
    return dict(request.path_params)
"""

SOCKET_HANDLER = """\
async def handler(websocket):
    await websocket.accept()
    async for message in websocket.iter_text():
        await websocket.send_text(message)
"""

EMPTY_HANDLER = """\
async def handler(request):
    return {"detail": "Not implemented"}, 501
"""

EMPTY_SOCKET = """\
async def handler(websocket):
    await websocket.accept()
    await websocket.close(1013, "Not implemented")
"""

_HOOKS = '''\
"""Callables to run when the application starts and stops: no parameter, or one, the application."""

on_startup = []
on_shutdown = []
'''

_MIDDLEWARE = '''\
"""The middleware of every request; the first entry is the outermost."""

middlewares = []
'''

_GITIGNORE = """\
__pycache__/
.venv/
.env
*.sqlite3
*.sqlite3-*
.pytest_cache/
.mypy_cache/
.ruff_cache/
"""

_SETTINGS = """\
#:schema https://treefold.github.io/treefold/latest/treefold.schema.json
# Variables win over this file: TREEFOLD_DATABASE_URL, TREEFOLD_LOG_LEVEL, ...

[databases]
default = "sqlite:///db.sqlite3"
"""

_TEST = """\
def test_health(client):
    answer = client.get("/v1/health")

    assert answer.status_code == 200
    assert answer.json() == {"status": "ok"}
"""

_MODEL = """\
from treefold.orm import Model, fields


class Note(Model):
    title = fields.CharField(max_length=200)
    text = fields.TextField(default="")
    created = fields.DateTimeField(auto_now_add=True)
"""

_README = f"""\
# {PROJECT_NAME}

An API built with treefold: the folders under `Api/` are the routes.

## Run

```
python3 -m venv .venv && . .venv/bin/activate
pip install "treefold[watch]"
treefold dev
```

With models, run `treefold makemigrations` first, then `treefold dev --migrate`.

In a second terminal:

```
curl http://127.0.0.1:8000/v1/health
```

answers `{{"status":"ok"}}`, from `Api/v1/Health/Get.py`.

## Grow

| Command | Effect |
|---|---|
| `treefold create 'order/[id]' get` | writes `Api/v1/Order/[id]/Get.py`: `GET /v1/order/{{id}}` |
| `treefold routes` | lists every method, URL and its file |
| `treefold check` | reports duplicate routes, broken handlers and skipped files |
| `treefold test` | runs the tests in `Tests/`, after `pip install "treefold[test]"` |
| `treefold serve` | runs the application in production |

## Layout

| Path | Holds |
|---|---|
| `Api/` | the endpoints: the folder path is the URL, the file name is the method |
| `Middleware/` | the list `middlewares` |
| `Services/`, `Utils/` | code that handlers share |
| `Models/` | database models |
| `Tests/` | tests |
| `hooks.py` | the lists `on_startup` and `on_shutdown` |
"""

_AGENTS = f"""\
# {PROJECT_NAME}, for coding agents

A treefold application: the folders below `Api/` are the routes. Ask the commands before you guess;
they answer from the files as they are.

## The tree

- `Api/v1/Order/[id]/Get.py` is `GET /v1/order/{{id}}`: version, path, method. Nothing is listed.
- A route file has one function `handler`. Its annotated parameters are path, query, body and
  dependencies; what it returns is the response.
- A folder `Services` beside a handler holds code for it and is never a route. Shared code is in
  `Services/` and `Utils/`, models in `Models/`, middleware in `Middleware/`, startup in `hooks.py`.
- A change that breaks clients goes into a new version: `treefold version create 2`.

## Commands

| Question | Command |
|---|---|
| Which URLs are there, from which files? | `treefold routes --json` |
| Which file answers a request, or why none? | `treefold why get /v1/health` |
| Where does a new route go? | `treefold create 'order/[id]' get` writes it |
| Does every file load? | `treefold check --strict` |
| Are settings, packages and databases right? | `treefold doctor` |
| Do the tests of a URL pass? | `treefold test /v1/health`; all: `treefold test` |
| How is it done in this version? | `treefold docs models`, `treefold docs --search "file upload"` |

After a change run `treefold check --strict` and `treefold test`; after a change of models,
`treefold makemigrations` first.

## Never edit

- a migration in `migrations/` that is applied: change the models and make another one
- `routes.lock` and clients of the API: `treefold contract lock` and `treefold client` write them
- `.env`; and no secret belongs into code or `treefold.toml`
"""

# The placeholder of an otherwise empty folder is an empty `__init__.py`, not a dotfile: a regular
# package is not shadowed by a `Utils` or `Tests` further along the import path, and pytest puts
# the root of the project on that path: `from Services.mail import send` works in `Tests/` too.
PROJECT: Mapping[str, str] = MappingProxyType(
    {
        "Api/v1/Health/Get.py": STATIC_HANDLER,
        "Middleware/__init__.py": _MIDDLEWARE,
        "Services/__init__.py": "",
        "Models/__init__.py": "",
        "Utils/__init__.py": "",
        "Tests/__init__.py": "",
        "hooks.py": _HOOKS,
        "README.md": _README,
    }
)

STARTER: Mapping[str, str] = MappingProxyType(
    {
        ".gitignore": _GITIGNORE,
        "AGENTS.md": _AGENTS,
        "treefold.toml": _SETTINGS,
        "Tests/test_health.py": _TEST,
    }
)
MODELS: Mapping[str, str] = MappingProxyType(
    {"treefold.toml": _SETTINGS, "Models/note.py": _MODEL}  # a model needs a database
)
