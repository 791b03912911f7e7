"""The tables of `docs/guides/deployment-checks.md` are those of the code."""

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

from treefold_http.deploy import SUBJECTS

ROOT = Path(__file__).resolve().parents[2]


def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("findings_page", ROOT / "tools/docs/findings.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


TOOL = tool()


def test_the_tables_of_findings_are_current() -> None:
    """`python tools/docs/findings.py --write` writes them."""
    page = TOOL.PAGE.read_text(encoding="utf-8")
    assert page.partition(TOOL.BEGIN)[2].partition(TOOL.END)[0].strip() == TOOL.tables().strip()


def test_each_kind_has_an_id_of_its_own_and_a_title() -> None:
    kinds = [kind for kinds in SUBJECTS.values() for kind in kinds]
    assert len({kind.id for kind in kinds}) == len(kinds)
    for kind in kinds:
        assert re.fullmatch(r"[a-z]+(-[a-z]+)+", kind.id)
        assert kind.title
        assert kind.attack


def test_other_pages_name_findings_that_there_are() -> None:
    known = {kind.id for kinds in SUBJECTS.values() for kind in kinds}
    begins = "|".join(sorted({name.partition("-")[0] for name in known} - {"login", "session"}))
    page = (ROOT / "docs/coming-from/django.md").read_text(encoding="utf-8")
    table = page.partition("**`check --deploy` knows the tree.**")[2].partition("**Passwords")[0]
    named = set(re.findall(rf"`((?:{begins})-[a-z-]+)`", table))
    assert len(named) > 10
    assert named <= known
