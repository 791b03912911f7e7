"""`python tools/release.py prepare PACKAGE VERSION | tag PACKAGE | plan TAG [URL]`.

`prepare` writes the version, its heading in the changelog, and new ranges of the packages that
would exclude it. `tag` makes the tag that `release.yml` publishes. `plan` is the first step of that
workflow: it checks a tag, and that the addresses in the metadata are below the URL of the
repository that publishes, or that of its site, and prints what it releases. Nothing here builds or
uploads.
"""

import re
import sys
from datetime import UTC, datetime
from pathlib import Path

from packaging.version import Version
from repository import ROOT, UNRELEASED, Package, git, of_tag, package, packages

USAGE = "usage: release prepare PACKAGE VERSION | release tag PACKAGE | release plan TAG [URL]"


def main(words: list[str], root: Path = ROOT) -> None:
    match words:
        case ["prepare", folder, version]:
            prepare(package(root, folder), version)
        case ["tag", folder]:
            tag(package(root, folder))
        case ["plan", name, *rest] if len(rest) < 2:
            plan(root, name, *rest)
        case _:
            sys.exit(USAGE)


def prepare(released: Package, text: str) -> None:
    """Write a new version into the files of a package and of those that depend on it."""
    if not re.fullmatch(r"(0|[1-9]\d*)(\.(0|[1-9]\d*)){2}", text):
        sys.exit(f"A version must be X.Y.Z, got {text!r}")
    version, current = Version(text), released.version
    tags = git(released.root, "tag", "--list", released.tag("*")).splitlines()
    if version < current or released.tag(version) in tags:
        sys.exit(f"{released.distribution} is at {current} already; give a later version than that")
    if released.section(f"## {version}") is not None:
        sys.exit(f"{version} has a heading in {released.changelog} already; run 'release tag'")
    if "- " not in (released.section(UNRELEASED) or ""):
        sys.exit(f"{released.changelog} has nothing below '{UNRELEASED}'; write what changed first")
    replace(released.about, f'"{current}"', f'"{version}"')
    today = datetime.now(UTC).date().isoformat()
    replace(released.changelog, UNRELEASED, f"{UNRELEASED}\n\n## {version} - {today}")
    print(f"{released.distribution} {version}: {released.changelog.relative_to(released.root)}")
    for dependent in packages(released.root).values():
        widen(dependent, released.distribution, version)
    print(f"commit, then: hatch run release tag {released.folder}")


def widen(dependent: Package, name: str, version: Version) -> None:
    """Move the range of a dependent to a version that it excludes, and note that for its users."""
    allowed = dependent.ranges.get(name)
    if allowed is None or version in allowed:
        return
    fresh = f"{name}>={version},<{next_breaking(version)}"
    manifest = dependent.manifest.read_text(encoding="utf-8")
    wanted = rf'(?<="){re.escape(name)}(\[[^\]]*\])?[<>=!~][^"]*(?=")'
    manifest = re.sub(wanted, lambda old: fresh.replace(name, name + (old[1] or "")), manifest)
    dependent.manifest.write_text(manifest, encoding="utf-8")
    line, section = f"- Requires {fresh}.", dependent.section(UNRELEASED)
    if section is None:
        sys.exit(f"{dependent.changelog} has no heading '{UNRELEASED}'; add it and this: {line}")
    if "### Changed\n\n" in section:
        replace(dependent.changelog, "### Changed\n\n", f"### Changed\n\n{line}\n")
    else:
        entry = f"{UNRELEASED}\n\n### Changed\n\n{line}"
        replace(dependent.changelog, UNRELEASED, entry)
    print(f"{dependent.distribution} now requires {fresh}")


def next_breaking(version: Version) -> str:
    return f"{version.major + 1}" if version.major else f"0.{version.minor + 1}"


def replace(file: Path, old: str, new: str) -> None:
    file.write_text(file.read_text(encoding="utf-8").replace(old, new, 1), encoding="utf-8")


def tag(released: Package) -> None:
    """Make the tag of the version that a package has now."""
    if dirty := git(released.root, "status", "--porcelain"):
        sys.exit(f"Commit or remove what is not committed first:\n{dirty}")
    name = released.tag(released.version)
    if git(released.root, "tag", "--list", name):
        sys.exit(f"There is a tag {name} already; run 'release prepare' with a later version")
    check(released)
    git(released.root, "tag", "-a", "-m", f"{released.distribution} {released.version}", name)
    print(f"tagged; publish it with: git push origin {name}")


def check(released: Package) -> None:
    """Exit where a version cannot be published: no notes, or a requirement that is not released."""
    if not released.section(f"## {released.version}"):
        sys.exit(
            f"{released.changelog} has no section '## {released.version}'; run 'release prepare'"
        )
    if released.folder == "treefold":
        require_upgrade_notes(released.root, released.version)
    for other in packages(released.root).values():
        allowed = released.ranges.get(other.distribution)
        if allowed is None:
            continue
        tags = git(released.root, "tag", "--list", other.tag("*")).splitlines()
        if not any(Version(each.rpartition("-v")[2]) in allowed for each in tags):
            sys.exit(
                f"{released.distribution} requires {other.distribution}{allowed}, and no such"
                f" version is tagged; release {other.folder} first"
            )


def require_upgrade_notes(root: Path, version: Version) -> None:
    """Exit where users of the umbrella are not told what to change for a minor release."""
    page = root / "docs" / "project" / "upgrading.md"
    heading = f"## {version.major}.{version.minor}"
    if not re.search(rf"^{re.escape(heading)}$", page.read_text(encoding="utf-8"), re.M):
        sys.exit(f"{page} has no section '{heading}'; write what to change in a project")


def find_site(url: str) -> str:
    """Return the address at which the code host serves the site of a repository; empty for none."""
    found = re.fullmatch(r"https://github\.com/([\w-]+)/([\w.-]+)/?", url)
    return f"https://{found[1].lower()}.github.io/{found[2]}/" if found else ""


def plan(root: Path, name: str, url: str = "") -> None:
    """Check that a tag can be published from here, and print its parts for later steps."""
    released, version = of_tag(root, name)
    if str(released.version) != version:
        sys.exit(f"{name} must be made where the version is {version}, got {released.version}")
    if git(root, "rev-parse", f"{name}^{{commit}}") != git(root, "rev-parse", "HEAD"):
        sys.exit(f"{name} is not the commit that is checked out; check it out first")
    check(released)
    urls: dict[str, str] = released.project.get("urls", {})
    bases = tuple(base for base in (url, find_site(url)) if base) or ("",)
    if wrong := [address for address in urls.values() if not address.startswith(bases)]:
        sys.exit(f"{wrong[0]} in {released.manifest} is not below {url}; mend [project.urls]")
    print(f"folder={released.folder}\ndistribution={released.distribution}\nversion={version}")
    print(f"artefact={released.distribution.replace('-', '_')}-{version}")


if __name__ == "__main__":
    main(sys.argv[1:])
