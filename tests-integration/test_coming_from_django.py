"""What `docs/coming-from/django.md` compares in words: checks, passwords and the async side."""

from __future__ import annotations

import gzip
import importlib
import json
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from treefold.auth import PasswordRules, WeakPassword, hash_password
from treefold.orm import Manager, QuerySet, RelatedManager, transaction
from treefold_http.deploy import SUBJECTS

PAGE = Path(__file__).resolve().parent.parent / "docs/coming-from/django.md"


def imported(name: str) -> Any:
    """Return a module of Django, which has no types."""
    return importlib.import_module(name)


def test_the_table_of_checks_has_each_one_of_django() -> None:
    theirs: set[str] = set()
    for part in ("base", "csrf", "sessions"):
        module = imported(f"django.core.checks.security.{part}")
        theirs |= {name for name in dir(module) if re.fullmatch(r"W\d{3}", name)}
    assert "W001" in theirs
    known = {kind.id for kinds in SUBJECTS.values() for kind in kinds}
    listed = set[str]()
    for row in PAGE.read_text("utf-8").splitlines():
        if not re.match(r"\| (W\d+|none)", row):
            continue
        left, right = (cell.strip() for cell in row.strip("|").split("|"))
        for first, last in re.findall(r"W(\d+)(?: to W(\d+))?", left):
            listed |= {f"W{number:03}" for number in range(int(first), int(last or first) + 1)}
        assert set(re.findall(r"`([a-z]+-[a-z-]+)`", right)) <= known
    assert theirs - listed == set()


NUMBERS = ["19870412", "3141592653589793", "9081726354", "\u0663" * 9]
ALIKE = [
    ("wolfeschlegel", "email", "wolfeschlegel@example.com"),
    ("example.com1", "email", "ann@example.com"),
    ("annwolfe99", "username", "annwolfe"),
    ("Wolfeschlegel7", "last_name", "Wolfeschlegel"),
]
"""A password, and the attribute of a user that it is like."""


ASK_DJANGO = """
import json, sys
from django.conf import settings

settings.configure(USE_I18N=False)
from django.contrib.auth import password_validation as validation
from django.core.exceptions import ValidationError

class Meta:
    def get_field(self, name):
        return type("Field", (), {"verbose_name": name})

validators = [
    validation.UserAttributeSimilarityValidator(), validation.MinimumLengthValidator(),
    validation.CommonPasswordValidator(), validation.NumericPasswordValidator(),
]
refused = []
for password, name, value in json.load(sys.stdin):
    user = type("User", (), {"_meta": Meta(), name: value})()
    for validator in validators:
        try:
            validator.validate(password, user)
        except ValidationError:
            refused.append(password)
            break
print(json.dumps(refused))
"""
"""In a process of its own: the settings of Django are those of a process."""

WEAK = [
    ("h7#kPz!", "username", ""),
    ("trustno1", "username", ""),
    *((number, "username", "") for number in NUMBERS),
    *ALIKE,
]


def test_a_password_that_one_of_the_validators_refuses() -> None:
    done = subprocess.run(
        [sys.executable, "-c", ASK_DJANGO], input=json.dumps(WEAK), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [password for password, _, _ in WEAK]
    for password, name, value in WEAK:
        with pytest.raises(WeakPassword):
            hash_password(password, rules=PasswordRules(), attributes={name: value})


def test_four_of_five_passwords_of_the_list_of_django_are_refused() -> None:
    django = find_spec("django")
    assert django is not None
    assert django.origin is not None
    file = Path(django.origin).parent / "contrib/auth/common-passwords.txt.gz"
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        passwords = [line.strip() for line in lines if line.strip()][::4]
    rules = PasswordRules()
    refused = [password for password in passwords if [*rules.faults(password, {})]]
    assert 0.79 < len(refused) / len(passwords) < 0.85


def test_each_method_has_the_async_form_of_django() -> None:
    theirs = imported("django.db.models").QuerySet
    names = [name for name in dir(theirs) if hasattr(theirs, f"a{name}")]
    pairs = [(name, f"a{name}") for name in names if not name.startswith("_")]
    ours = [pair for pair in pairs if hasattr(QuerySet, pair[0]) or hasattr(Manager, pair[0])]
    assert len(ours) >= 15
    lacking = [name for _, name in ours if not (hasattr(QuerySet, name) or hasattr(Manager, name))]
    related = [name for name in ("aadd", "aremove", "aset") if not hasattr(RelatedManager, name)]
    assert (lacking, related, hasattr(transaction, "__aenter__")) == ([], [], True)
