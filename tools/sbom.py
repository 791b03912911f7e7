"""Write a software bill of materials for each artefact: `python tools/sbom.py DIST FOLDER`.

`FOLDER/<artefact>.cdx.json` is CycloneDX 1.6: the distribution with its hash, what it requires with
the range of each requirement, and the third-party files that it carries, by the lock that pins
them. The same artefact makes the same bytes.
"""

import email
import email.message
import hashlib
import json
import sys
import tarfile
import uuid
import zipfile
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from repository import ROOT, packages

USAGE = "usage: python tools/sbom.py DIST FOLDER"
BUNDLED_LICENCES = {"swagger-ui-dist": "Apache-2.0"}
"""Licences of what a lock of files brings, which npm does not tell in the lock."""


def main(words: list[str]) -> None:
    if len(words) != 2 or words[0].startswith("-"):
        sys.exit(USAGE)
    dist, folder = map(Path, words)
    artefacts = sorted([*dist.glob("*.whl"), *dist.glob("*.tar.gz")])
    if not artefacts:
        sys.exit(f"{dist} holds no wheel and no sdist; build one first")
    folder.mkdir(parents=True, exist_ok=True)
    for artefact in artefacts:
        target = folder / f"{artefact.name}.cdx.json"
        text = json.dumps(describe_artefact(artefact), indent=2, sort_keys=True)
        target.write_text(text + "\n", encoding="utf-8")
        print(target)


def read_metadata(artefact: Path) -> email.message.Message:
    """Return the metadata of a wheel or an sdist."""
    if artefact.suffix == ".whl":
        with zipfile.ZipFile(artefact) as archive:
            (name,) = (n for n in archive.namelist() if n.endswith(".dist-info/METADATA"))
            return email.message_from_bytes(archive.read(name))
    with tarfile.open(artefact) as archive:
        root = artefact.name.removesuffix(".tar.gz")
        content = archive.extractfile(f"{root}/PKG-INFO")
        return email.message_from_bytes(content.read() if content else b"")


def describe_artefact(artefact: Path) -> dict[str, Any]:
    """Return the bill of one artefact."""
    metadata = read_metadata(artefact)
    digest = hashlib.sha256(artefact.read_bytes()).hexdigest()
    name, version = metadata["Name"], metadata["Version"]
    own = f"pkg:pypi/{canonicalize_name(name)}@{version}"
    requirements = [Requirement(line) for line in metadata.get_all("Requires-Dist") or ()]
    required = {each["bom-ref"]: each for each in map(describe_requirement, requirements)}
    parts = {each["bom-ref"]: each for each in describe_bundled(name)}
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, f'{artefact.name}:{digest}')}",
        "version": 1,
        "metadata": {
            "component": {
                "type": "library",
                "bom-ref": own,
                "name": name,
                "version": version,
                "description": metadata["Summary"],
                "purl": f"{own}?file_name={artefact.name}",
                "licenses": [{"expression": metadata["License-Expression"]}],
                "hashes": [{"alg": "SHA-256", "content": digest}],
            }
        },
        "components": [*parts.values(), *required.values()],
        "dependencies": [
            {"ref": own, "dependsOn": sorted([*parts, *required])},
            *({"ref": ref} for ref in sorted([*parts, *required])),
        ],
    }


def describe_requirement(requirement: Requirement) -> dict[str, Any]:
    """Return a component that is installed beside the artefact, in a version of its range."""
    name = canonicalize_name(requirement.name)
    optional = requirement.marker is not None and "extra ==" in str(requirement.marker)
    return {
        "type": "library",
        "bom-ref": f"pkg:pypi/{name}",
        "name": name,
        "purl": f"pkg:pypi/{name}",
        "scope": "optional" if optional else "required",
        "properties": [{"name": "requirement", "value": str(requirement)}],
    }


def describe_bundled(distribution: str) -> list[dict[str, Any]]:
    """Return the third-party components whose files are inside of the artefact."""
    (found,) = (each for each in packages(ROOT).values() if each.distribution == distribution)
    lock = found.path / "assets.lock.json"
    if not lock.exists():
        return []
    entries = json.loads(lock.read_text(encoding="utf-8")).values()
    return [
        {
            "type": "library",
            "bom-ref": f"pkg:npm/{entry['package']}@{entry['version']}",
            "name": entry["package"],
            "version": entry["version"],
            "purl": f"pkg:npm/{entry['package']}@{entry['version']}",
            "scope": "required",
            "licenses": [{"license": {"id": BUNDLED_LICENCES[entry["package"]]}}],
            "externalReferences": [
                {
                    "type": "distribution",
                    "url": f"https://www.npmjs.com/package/{entry['package']}/v/{entry['version']}",
                }
            ],
            "properties": [{"name": "integrity", "value": entry["integrity"]}],
        }
        for entry in entries
    ]


if __name__ == "__main__":
    main(sys.argv[1:])
