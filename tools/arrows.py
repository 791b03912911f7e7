"""Check that the packages depend on each other only as `docs/project/architecture.md` says.

Three views of the same arrows must agree: the table below, the requirements in each manifest, and
the imports in the code (import-linter for the direction, deptry for what is declared).
"""

import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

ARROWS: dict[str, set[str]] = {
    "router": set(),
    "contract": set(),
    "logging": set(),
    "orm": set(),
    "docs-ui": set(),
    "migrations": {"orm"},
    "jobs": {"orm"},
    "scaffold": {"router"},
    "server": {"logging"},
    "http": {"router", "logging"},
    "cli": {"contract", "http", "server", "scaffold", "router", "logging"},
    "treefold": {
        *("cli", "http", "migrations", "orm", "scaffold", "router", "logging", "docs-ui"),
        *("server", "jobs", "contract"),
    },
}

EXTRAS: dict[str, dict[str, str]] = {"http": {"docs": "docs-ui", "contract": "contract"}}
"""Arrows that only an extra draws: the name of the extra, and where it leads."""


def main() -> None:
    findings = [line for folder in sorted(ARROWS) for line in manifest_findings(folder)]
    found = {path.parent.name for path in ROOT.glob("packages/*/pyproject.toml")}
    findings += [
        f"{name}: not in the table of {Path(__file__).name}" for name in found - set(ARROWS)
    ]
    for finding in findings:
        print(finding, file=sys.stderr)
    failed = [command for command in commands() if subprocess.run(command, cwd=ROOT).returncode]
    if findings or failed:
        sys.exit(1)


def manifest_findings(folder: str) -> list[str]:
    """Say where a manifest requires more, less, or more narrowly than the table draws."""
    manifest = tomllib.loads((ROOT / "packages" / folder / "pyproject.toml").read_text())
    required = siblings(manifest["project"].get("dependencies", []))
    extras = EXTRAS.get(folder, {})
    findings = [
        f"{folder}: requires {name}, which no arrow allows"
        for name in set(required) - ARROWS[folder]
    ]
    findings += [f"{folder}: does not require {name}" for name in ARROWS[folder] - set(required)]
    for extra, name in extras.items():
        optional = siblings(manifest["project"]["optional-dependencies"].get(extra, []))
        if set(optional) != {name}:
            findings.append(f"{folder}: the extra {extra} does not bring {name} alone")
        required |= optional
    findings += [
        f"{folder}: requires {name}{specifier}; give a range up to the next breaking version"
        for name, specifier in required.items()
        if not (specifier.startswith(">=") and ",<" in specifier)
    ]
    sources = manifest.get("tool", {}).get("uv", {}).get("sources", {})
    drawn = ARROWS[folder] | set(extras.values())
    missing = {f"treefold-{name}" for name in drawn} - set(sources)
    return findings + [
        f"{folder}: no [tool.uv.sources] entry for {name}" for name in sorted(missing)
    ]


def siblings(requirements: list[str]) -> dict[str, str]:
    return {
        name.removeprefix("treefold-"): specifier
        for name, specifier in map(split, requirements)
        if name.startswith("treefold-")
    }


def split(requirement: str) -> tuple[str, str]:
    name = requirement.split(">")[0].split("=")[0].split("[")[0].strip()
    return name, requirement[len(name) :].strip()


def commands() -> list[list[str]]:
    return [["lint-imports"], *map(deptry, sorted(ARROWS))]


def deptry(folder: str) -> list[str]:
    package = f"packages/{folder}"
    # DEP002, required and never imported, is what extras and the umbrella are for.
    options = ["--no-ansi", "--ignore=DEP002", f"--config={package}/pyproject.toml"]
    return ["deptry", *options, f"{package}/src"]


if __name__ == "__main__":
    main()
