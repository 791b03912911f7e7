"""Tables that the ORM made come back as models that make the same tables."""

from __future__ import annotations

from pathlib import Path

import inspect_models
import pytest
from baseline_support import MakePlace, made_again, take_over
from inspect_place import Place, make_place as make_place, place as place
from test_inspect_schema import MODELS, metas_of


@pytest.mark.parametrize("module", MODELS)
def test_models_come_back(place: Place, make_place: MakePlace, module: str, tmp_path: Path) -> None:
    place.create(metas_of(module))
    taken = take_over(place, tmp_path)
    print(taken.models)
    assert taken.as_found == {}
    made_again(taken, make_place(place.engine))


def test_every_kind_of_part_comes_back(place: Place, make_place: MakePlace, tmp_path: Path) -> None:
    models = inspect_models.BOTH
    if place.engine == "postgres":
        models += inspect_models.POSTGRES
    place.create(model._meta for model in models)
    taken = take_over(place, tmp_path)
    print(taken.models)
    print(taken.as_found)
    made_again(taken, make_place(place.engine))
