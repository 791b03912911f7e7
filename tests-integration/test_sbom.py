"""The bill of materials of an artefact: valid CycloneDX, complete, the same for the same bytes."""

import hashlib
import json
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packaging.requirements import Requirement

sys.path.append(str(Path(__file__).parent.parent / "tools"))

import sbom
import suites

PACKAGES = ("docs-ui", "cli", "router")


@pytest.fixture(scope="module")
def bills(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bills of the artefacts of three packages, beside them."""
    folder = tmp_path_factory.mktemp("dist")
    for package in PACKAGES:
        suites.build(repository / "packages" / package, folder)
    sbom.main([str(folder), str(folder)])
    return folder


def read_bill(artefact: Path) -> dict[str, Any]:
    return json.loads(artefact.with_name(f"{artefact.name}.cdx.json").read_text(encoding="utf-8"))


def artefacts_of(bills: Path, package: str) -> list[Path]:
    files = [*bills.glob("*.whl"), *bills.glob("*.tar.gz")]
    return [
        each for each in files if each.name.startswith(f"treefold_{package.replace('-', '_')}-")
    ]


def test_every_bill_is_valid(bills: Path) -> None:
    validator = JsonStrictValidator(SchemaVersion.V1_6)
    files = list(bills.glob("*.cdx.json"))
    assert len(files) == 2 * len(PACKAGES)
    for file in files:
        assert validator.validate_str(file.read_text(encoding="utf-8")) is None, file


@pytest.mark.parametrize("package", PACKAGES)
def test_a_bill_names_the_artefact_and_each_requirement(
    bills: Path, repository: Path, package: str
) -> None:
    text = (repository / "packages" / package / "pyproject.toml").read_text(encoding="utf-8")
    declared = tomllib.loads(text)["project"].get("dependencies", [])
    for artefact in artefacts_of(bills, package):
        bill = read_bill(artefact)
        own = bill["metadata"]["component"]
        assert own["name"] == f"treefold-{package}"
        (digest,) = own["hashes"]
        assert digest["content"] == hashlib.sha256(artefact.read_bytes()).hexdigest()
        required = {
            Requirement(each["properties"][0]["value"])
            for each in bill["components"]
            if each["scope"] == "required" and each["purl"].startswith("pkg:pypi/")
        }
        assert required == set(map(Requirement, declared))


def test_what_is_carried_is_named_with_its_version_and_hash(bills: Path, repository: Path) -> None:
    lock = json.loads((repository / "packages/docs-ui/assets.lock.json").read_text())
    for artefact in artefacts_of(bills, "docs-ui"):
        carried = [each for each in read_bill(artefact)["components"] if "npm" in each["purl"]]
        assert {(each["name"], each["version"]) for each in carried} == {
            (entry["package"], entry["version"]) for entry in lock.values()
        }
        assert {each["properties"][0]["value"] for each in carried} == {
            entry["integrity"] for entry in lock.values()
        }


def test_the_same_artefact_makes_the_same_bill(bills: Path, tmp_path: Path) -> None:
    sbom.main([str(bills), str(tmp_path)])
    for file in tmp_path.iterdir():
        assert file.read_bytes() == (bills / file.name).read_bytes()


def test_a_folder_without_artefacts_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="holds no wheel and no sdist; build one first"):
        sbom.main([str(tmp_path), str(tmp_path)])
