"""Addresses in settings: what is wrong is said at boot, and no secret with it."""

from __future__ import annotations

import pytest

from treefold_orm import ConfigurationError
from treefold_orm._runtime.addresses import check_address, mask_address

SECRET = "hunter2"


@pytest.mark.parametrize(
    "address",
    [
        "sqlite:///db.sqlite3",
        "sqlite:///:memory:",
        "sqlite://:memory:",
        "sqlite:////tmp/db.sqlite3",
        "sqlite:///db.sqlite3?synchronous=full",
        "postgresql://localhost/shop",
        "postgres://user:p%40ss@db.example:5432/shop?pool_size=10&sslmode=require",
        "postgresql:///shop?host=/var/run/postgresql",
        "postgresql://[::1]:5432/shop",
    ],
)
def test_good_addresses_pass(address: str) -> None:
    check_address("default", address)


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("", "is not an address"),
        ("db.sqlite3", "is not an address"),
        (f"user:{SECRET}@host/db", "is not an address"),
        (f"{SECRET} x://host", "is not an address"),
        (f"mysql://user:{SECRET}@host/db", "has the scheme 'mysql', which is not known"),
        ("postgresql+asyncpg://host/db", "has the scheme 'postgresql+asyncpg'"),
        ("sqlite://db.sqlite3", "names no file; give sqlite:///file.sqlite3"),
        ("sqlite://", "names no file"),
        ("sqlite:///", "names no file"),
        ("sqlite:///db.sqlite3?mode=ro", "SQLite takes no option 'mode'"),
        ("sqlite:///db.sqlite3?synchronous=off", "one of 'normal', 'full', got 'off'"),
        ("sqlite:///no/such/folder/db.sqlite3", "which is not a folder"),
        (f"postgresql://user:{SECRET}@host:54x2/db", "give the port as a number"),
        (f"postgresql://user:{SECRET}@host:99999/db", "give the port as a number"),
        (f"postgresql://user:{SECRET}/x@host/db", "percent-encode"),
        (f"postgresql://user:{SECRET}@x@host/db", "percent-encode"),
        (f"postgresql://user:{SECRET}#x@host/db", "percent-encode"),
        (f"postgresql://user:{SECRET}[@host/db", "percent-encode"),
        (f"postgresql://u:{SECRET}@host/db?pool_size=many", "has pool_size='many'"),
        (f"postgresql://u:{SECRET}@host/db?pool_size=0", "has pool_size='0'"),
        (f"postgresql://u:{SECRET}@host/db?pool_size=", "has pool_size=''"),
    ],
)
def test_bad_addresses_are_refused_without_their_secrets(address: str, message: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        check_address("default", address)
    assert message in str(refused.value)
    assert str(refused.value).startswith("Database 'default' ")
    assert SECRET not in str(refused.value)


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        (f"postgresql://ann:{SECRET}@host:5432/shop", "postgresql://***@host:5432/shop"),
        (
            f"postgresql://ann:{SECRET}@x/y@host/shop?password={SECRET}",
            "postgresql://***@host/shop",
        ),
        ("postgresql://host/shop", "postgresql://host/shop"),
        ("sqlite:///db.sqlite3", "sqlite:///db.sqlite3"),
    ],
)
def test_what_is_shown_of_an_address(address: str, shown: str) -> None:
    assert mask_address(address) == shown
