"""The sample asks its database once for what it shows, however many rows there are."""

import logging
from pathlib import Path

from serving import NewDatabase, migrate

from treefold import Application, Settings, get_logger
from treefold.testing import TestClient

ADA = {"Authorization": "Bearer ada"}
ISBNS = ("9780553293357", "9780441478125", "9780061054884")


def test_no_page_asks_the_database_again_for_each_row(
    sample: Path, new_database: NewDatabase
) -> None:
    lines: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(record.getMessage())
    get_logger().addHandler(handler)
    lines_of_order = {"lines": dict.fromkeys(ISBNS, 1)}
    with new_database() as database:
        migrate(sample, database)
        settings = Settings.load(sample, databases={"default": database})
        with TestClient(
            Application(sample, dev=True, settings=settings), contract="strict"
        ) as shop:
            placed = shop.post("/v1/order", json=lines_of_order, headers=ADA)
            targets = [
                "/v1/book",
                "/v2/book",
                "/v1/book/export",
                "/v1/user",
                "/v1/user/me/order",
                f"/v1/order/{placed.json()['id']}",
            ]
            assert {shop.get(t, headers=ADA).status_code for t in targets} == {200}
    get_logger().removeHandler(handler)
    assert [line for line in lines if "N+1" in line] == []
