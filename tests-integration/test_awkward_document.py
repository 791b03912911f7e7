"""The document of handlers that generators of clients stumble over is valid and has all of them."""

from __future__ import annotations

import importlib
from typing import Any

import pytest
from awkward import HANDLERS, write_awkward_project

from treefold import Application
from treefold_http.openapi import openapi_document


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> Any:
    app = Application(write_awkward_project(tmp_path_factory.mktemp("awkward")))
    try:
        return openapi_document(app)
    finally:
        app.threads.shutdown()


def test_every_handler_is_an_operation(document: Any) -> None:
    ids = [each["operationId"] for item in document["paths"].values() for each in item.values()]

    assert len(set(ids)) == len(ids) == len(HANDLERS) >= 56


def test_the_document_is_valid(document: Any) -> None:
    importlib.import_module("openapi_spec_validator").validate(document)


def test_every_media_type_has_a_schema(document: Any) -> None:
    operations = [each for item in document["paths"].values() for each in item.values()]
    held = [response for each in operations for response in each["responses"].values()]
    held += [each["requestBody"] for each in operations if "requestBody" in each]
    media = [pair for each in held for pair in each.get("content", {}).items()]

    assert len(media) > 100
    assert [name for name, content in media if "*" in name or "schema" not in content] == []
