"""The tools of a release, on a small repository with real git: `changed`, `release` and `notes`."""

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent.parent / "tools"))

import changed
import floor
import notes
import release
import repository
import suites

CHANGELOG = "# Changelog of {name}\n\n## Unreleased\n\n### Added\n\n- The first thing.\n"
REQUIREMENTS = {
    "core": "",
    "docs": "",
    "web": '"toy-core>=0.1.0,<0.2"',
    "app": '"toy-web[docs]>=0.1.0,<0.2", "toy-core>=0.1.0,<0.2"',
}

Git = Callable[..., str]


@pytest.fixture
def git(tmp_path: Path) -> Git:
    def run(*arguments: str) -> str:
        return repository.git(tmp_path, *arguments)

    return run


@pytest.fixture
def toy(tmp_path: Path, git: Git) -> Path:
    """Four packages: app requires web and core, web requires core, and docs with an extra."""
    for folder, requirements in REQUIREMENTS.items():
        package = tmp_path / "packages" / folder
        (package / "src" / f"toy_{folder}").mkdir(parents=True)
        (package / "src" / f"toy_{folder}" / "__about__.py").write_text('__version__ = "0.1.0"\n')
        (package / "CHANGELOG.md").write_text(CHANGELOG.format(name=f"toy-{folder}"))
        extra = '\n[project.optional-dependencies]\ndocs = ["toy-docs>=0.1.0,<0.2"]\n'
        (package / "pyproject.toml").write_text(
            f'[project]\nname = "toy-{folder}"\ndependencies = [{requirements}]\n'
            f'urls.Source = "https://code.example/toy"\n{extra if folder == "web" else ""}'
        )
    (tmp_path / "README.md").write_text("# toy\n")
    git("init", "--quiet", "--initial-branch", "main")
    git("config", "user.name", "A maintainer")
    git("config", "user.email", "maintainer@code.example")
    commit(git, "first")
    return tmp_path


def commit(git: Git, subject: str) -> None:
    git("add", ".")
    git("commit", "--quiet", "-m", subject)


def replace(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))


def prepare(toy: Path, folder: str, version: str) -> None:
    release.main(["prepare", folder, version], toy)


def released(toy: Path, git: Git, folder: str, version: str) -> str:
    """Prepare, commit and tag a version."""
    prepare(toy, folder, version)
    commit(git, f"{folder}: {version}")
    release.main(["tag", folder], toy)
    return f"{folder}-v{version}"


def refusal(call: Callable[[], object]) -> str:
    with pytest.raises(SystemExit) as refused:
        call()
    return str(refused.value)


# changed


@pytest.mark.parametrize(
    ("file", "touched"),
    [
        ("packages/docs/src/page.py", ["app", "docs", "web"]),
        ("packages/web/README.md", ["app", "web"]),
        ("packages/app/new.py", ["app"]),
        ("hatch.toml", ["app", "core", "docs", "web"]),
        ("packages/gone/old.py", ["app", "core", "docs", "web"]),
        ("tests-integration/test_all.py", []),
        ("docs/page.md", []),
    ],
)
@pytest.mark.parametrize("is_committed", [True, False], ids=["committed", "not committed"])
def test_a_changed_file_names_its_package_and_all_that_depend_on_it(
    toy: Path,
    git: Git,
    capsys: pytest.CaptureFixture[str],
    file: str,
    touched: list[str],
    is_committed: bool,
) -> None:
    git("switch", "--quiet", "--create", "work")
    (toy / file).parent.mkdir(parents=True, exist_ok=True)
    (toy / file).write_text("x = 1\n")
    if is_committed:
        commit(git, "change")
    changed.main(["--json"], toy)
    assert json.loads(capsys.readouterr().out) == touched


def test_what_main_changed_meanwhile_is_not_a_change_of_the_branch(toy: Path, git: Git) -> None:
    git("switch", "--quiet", "--create", "work")
    git("switch", "--quiet", "main")
    (toy / "packages/core/new.py").touch()
    commit(git, "main goes on")
    git("switch", "--quiet", "work")
    assert changed.changed(toy, "main") == []


def test_a_file_moved_to_another_package_touches_both(toy: Path, git: Git) -> None:
    (toy / "packages/docs/moved.py").write_text("a = 1\n" * 20)
    commit(git, "a file")
    git("mv", "packages/docs/moved.py", "packages/app/moved.py")
    commit(git, "move")
    assert changed.changed(toy, "HEAD^") == ["app", "docs", "web"]


def test_the_first_commit_of_a_branch_changes_everything(
    toy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    changed.main(["0" * 40], toy)
    assert capsys.readouterr().out.split() == ["app", "core", "docs", "web"]


def test_an_unknown_base_is_refused_with_its_name(toy: Path) -> None:
    assert "nowhere" in refusal(lambda: changed.main(["nowhere"], toy))


def test_no_package_tests_what_a_change_of_the_pages_would_break(repository: Path) -> None:
    reading = re.compile(r"""parents?\[3\] / ["'](docs|tests-integration|README)""")
    tests = repository.glob("packages/*/tests/**/*.py")
    assert [path for path in tests if reading.search(path.read_text(encoding="utf-8"))] == []


# release prepare


def test_prepare_writes_version_and_heading_and_leaves_ranges_that_allow_it(
    toy: Path, git: Git, capsys: pytest.CaptureFixture[str]
) -> None:
    prepare(toy, "core", "0.1.1")
    assert git("diff", "--name-only").split() == [
        "packages/core/CHANGELOG.md",
        "packages/core/src/toy_core/__about__.py",
    ]
    core = repository.package(toy, "core")
    assert (str(core.version), core.section("## Unreleased")) == ("0.1.1", "")
    assert core.section("## 0.1.1") == "### Added\n\n- The first thing."
    assert "hatch run release tag core" in capsys.readouterr().out


def test_prepare_moves_each_range_that_excludes_the_version(
    toy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    prepare(toy, "web", "0.2.0")
    manifest = (toy / "packages/app/pyproject.toml").read_text()
    assert '"toy-web[docs]>=0.2.0,<0.3", "toy-core>=0.1.0,<0.2"' in manifest
    changes = repository.package(toy, "app").section("## Unreleased") or ""
    assert changes.startswith("### Changed\n\n- Requires toy-web>=0.2.0,<0.3.\n")
    assert "toy-app now requires toy-web>=0.2.0,<0.3" in capsys.readouterr().out
    prepare(toy, "core", "1.0.0")
    manifest = (toy / "packages/app/pyproject.toml").read_text()
    assert '"toy-web[docs]>=0.2.0,<0.3", "toy-core>=1.0.0,<2"' in manifest
    changes = repository.package(toy, "app").section("## Unreleased") or ""
    assert changes.count("### Changed") == 1
    assert changes.count("- Requires toy-") == 2


def test_prepare_moves_the_range_of_an_extra(toy: Path) -> None:
    prepare(toy, "docs", "0.2.0")
    assert 'docs = ["toy-docs>=0.2.0,<0.3"]' in (toy / "packages/web/pyproject.toml").read_text()


@pytest.mark.parametrize(
    ("folder", "version", "reason"),
    [
        ("core", "0.0.9", "toy-core is at 0.1.0 already"),
        ("core", "v0.2.0", "A version must be X.Y.Z, got 'v0.2.0'"),
        ("core", "0.2", "A version must be X.Y.Z, got '0.2'"),
        ("core", "0.02.0", "A version must be X.Y.Z, got '0.02.0'"),
        ("cor", "0.2.0", "Unknown package 'cor'; use one of app, core, docs, web"),
    ],
)
def test_prepare_refuses_with_the_value_and_writes_nothing(
    toy: Path, git: Git, folder: str, version: str, reason: str
) -> None:
    assert reason in refusal(lambda: prepare(toy, folder, version))
    assert git("status", "--porcelain") == ""


def test_prepare_refuses_a_release_without_a_changelog_entry(toy: Path) -> None:
    replace(toy / "packages/core/CHANGELOG.md", "- The first thing.\n", "")
    assert "write what changed first" in refusal(lambda: prepare(toy, "core", "0.2.0"))


def test_the_version_that_was_never_released_may_be_the_first_one(toy: Path, git: Git) -> None:
    assert released(toy, git, "core", "0.1.0") == "core-v0.1.0"
    replace(toy / "packages/core/CHANGELOG.md", "## Unreleased\n", "## Unreleased\n\n- More.\n")
    assert "toy-core is at 0.1.0 already" in refusal(lambda: prepare(toy, "core", "0.1.0"))


# release tag


def test_a_tag_is_annotated_and_named_by_folder_and_version(toy: Path, git: Git) -> None:
    name = released(toy, git, "core", "0.2.0")
    assert git("cat-file", "-t", name) == "tag"
    assert git("tag", "--list", "--format=%(contents:subject)", name) == "toy-core 0.2.0"


def test_tag_refuses_a_version_without_a_section(toy: Path) -> None:
    assert "run 'release prepare'" in refusal(lambda: release.main(["tag", "core"], toy))


def test_tag_refuses_a_tree_that_is_not_clean(toy: Path) -> None:
    prepare(toy, "core", "0.2.0")
    assert "packages/core/CHANGELOG.md" in refusal(lambda: release.main(["tag", "core"], toy))


def test_tag_refuses_a_requirement_that_was_never_released(toy: Path, git: Git) -> None:
    prepare(toy, "web", "0.1.0")
    commit(git, "web: 0.1.0")
    refused = refusal(lambda: release.main(["tag", "web"], toy))
    assert "release core first" in refused
    released(toy, git, "core", "0.1.0")
    assert "release docs first" in refusal(lambda: release.main(["tag", "web"], toy))
    released(toy, git, "docs", "0.1.0")
    release.main(["tag", "web"], toy)
    assert git("tag", "--list", "web-*") == "web-v0.1.0"


# release plan


def test_plan_says_what_a_tag_releases(
    toy: Path, git: Git, capsys: pytest.CaptureFixture[str]
) -> None:
    name = released(toy, git, "core", "0.2.0")
    capsys.readouterr()
    release.main(["plan", name, "https://code.example/toy"], toy)
    expected = ["folder=core", "distribution=toy-core", "version=0.2.0", "artefact=toy_core-0.2.0"]
    assert capsys.readouterr().out.split() == expected


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("core-v0.2.1", "must be made where the version is 0.2.1, got 0.2.0"),
        ("v0.2.0", "A tag must be <folder>-vX.Y.Z, got 'v0.2.0'"),
        ("cores-v0.2.0", "Unknown package 'cores'"),
        ("core-v0.2.0; echo x", "A tag must be <folder>-vX.Y.Z"),
    ],
)
def test_plan_refuses_a_tag_that_is_not_of_this_version(
    toy: Path, git: Git, name: str, reason: str
) -> None:
    released(toy, git, "core", "0.2.0")
    git("tag", "core-v0.2.1")
    assert reason in refusal(lambda: release.main(["plan", name], toy))


def test_plan_refuses_a_commit_behind_the_tag(toy: Path, git: Git) -> None:
    name = released(toy, git, "core", "0.2.0")
    (toy / "README.md").write_text("# later\n")
    commit(git, "later")
    assert "check it out first" in refusal(lambda: release.main(["plan", name], toy))


def test_plan_refuses_metadata_with_the_address_of_another_repository(toy: Path, git: Git) -> None:
    name = released(toy, git, "core", "0.2.0")
    url = "https://code.example/fork"
    refused = refusal(lambda: release.main(["plan", name, url], toy))
    assert "https://code.example/toy in" in refused
    assert f"not below {url}" in refused


@pytest.mark.parametrize(
    ("url", "site"),
    [
        ("https://github.com/Toy/toy/", "https://toy.github.io/toy/"),
        ("https://github.com/toy/toy", "https://toy.github.io/toy/"),
        ("https://code.example/toy/", ""),
    ],
)
def test_the_site_of_a_repository_is_known_from_its_address(url: str, site: str) -> None:
    assert release.find_site(url) == site


def test_plan_takes_the_address_of_the_site_of_this_repository_only(toy: Path, git: Git) -> None:
    manifest = toy / "packages/core/pyproject.toml"
    replace(manifest, "https://code.example/toy", "https://toy.github.io/toy/latest/")
    commit(git, "a site")
    name = released(toy, git, "core", "0.2.0")
    release.main(["plan", name, "https://github.com/toy/toy/"], toy)
    fork = refusal(lambda: release.main(["plan", name, "https://github.com/fork/toy/"], toy))
    assert "https://toy.github.io/toy/latest/ in" in fork


def test_a_release_of_the_umbrella_needs_a_section_on_the_page_of_upgrades(tmp_path: Path) -> None:
    page = tmp_path / "docs/project/upgrading.md"
    page.parent.mkdir(parents=True)
    page.write_text("# Upgrading\n\n## 0.2\n\nNothing.\n")
    release.require_upgrade_notes(tmp_path, repository.Version("0.2.3"))
    refused = refusal(lambda: release.require_upgrade_notes(tmp_path, repository.Version("0.3.0")))
    assert "has no section '## 0.3'; write what to change in a project" in refused


def test_the_page_of_upgrades_has_the_version_of_the_checkout() -> None:
    umbrella = repository.package(repository.ROOT, "treefold")
    release.require_upgrade_notes(repository.ROOT, umbrella.version)


def test_every_manifest_leads_to_the_site_of_its_repository() -> None:
    for each in repository.packages(repository.ROOT).values():
        urls = each.project["urls"]
        site = release.find_site(urls["Issues"].removesuffix("issues"))
        assert urls["Documentation"] == f"{site}latest/"


# notes


def test_notes_are_the_section_at_the_tag(
    toy: Path, git: Git, capsys: pytest.CaptureFixture[str]
) -> None:
    name = released(toy, git, "core", "0.2.0")
    replace(toy / "packages/core/CHANGELOG.md", "- The first thing.", "- Told otherwise later.")
    capsys.readouterr()
    notes.main([name], toy)
    assert capsys.readouterr().out == "### Added\n\n- The first thing.\n"


def test_notes_refuse_a_tag_without_a_section(toy: Path, git: Git) -> None:
    git("tag", "core-v0.9.0")
    assert "has no section '## 0.9.0'" in refusal(lambda: notes.main(["core-v0.9.0"], toy))
    assert "core-v7.0.0" in refusal(lambda: notes.main(["core-v7.0.0"], toy))


# the command line


@pytest.mark.parametrize("tool", ["changed", "release", "notes", "suites", "sbom"])
def test_a_tool_that_is_called_wrongly_says_how_it_is_called(repository: Path, tool: str) -> None:
    command = [sys.executable, repository / "tools" / f"{tool}.py", "--bogus"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.startswith("usage: ")


def test_words_of_suites_are_packages_options_of_ours_and_options_of_pytest() -> None:
    words = ["http", "--python", "3.12", "orm", "--python", "3.13", "-k", "scan", "--python"]
    found = suites.arguments(words, "--python")
    assert found == (["http", "orm"], {"--python": ["3.12", "3.13"]}, ["-k", "scan", "--python"])
    assert suites.arguments(["http", "--", "-x"]) == (["http"], {}, ["-x"])
    assert refusal(lambda: suites.arguments(["--python"], "--python")) == "--python needs a value"


def test_an_unknown_package_of_a_suite_is_refused_with_all_names() -> None:
    refused = refusal(lambda: suites.suites_of(["routr"]))
    assert refused.startswith("Unknown package routr; use one of router, contract, logging")


@pytest.mark.parametrize("package", sorted(suites.SUITES))
def test_every_package_has_a_suite_with_a_test_program(repository: Path, package: str) -> None:
    assert (repository / "packages" / package).is_dir()
    for suite in suites.suites_of([package]):
        assert [tool for tool in suite.tools if tool.startswith("pytest==")]
        assert package in dict(suite.members)


def test_there_is_a_suite_for_every_package(repository: Path) -> None:
    assert {path.name for path in (repository / "packages").iterdir()} == set(suites.SUITES)


def test_a_floor_below_the_checkout_is_taken_from_its_tag(
    toy: Path, git: Git, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(floor, "ROOT", toy)
    released(toy, git, "core", "0.1.0")
    replace(toy / "packages/core/CHANGELOG.md", "## Unreleased\n", "## Unreleased\n\n- More.\n")
    released(toy, git, "core", "0.1.1")
    floors = floor.floors_of("web", ["docs"])
    assert floors == {"toy-core": "0.1.0", "toy-docs": "0.1.0"}
    place = floor.source("core", floors["toy-core"], tmp_path_factory.mktemp("floor"))
    assert '"0.1.0"' in (place / "src/toy_core/__about__.py").read_text()
    assert floor.source("core", "0.1.1", place) == toy / "packages/core"
    refused = refusal(lambda: floor.source("core", "0.0.5", place))
    assert refused == "core 0.0.5 has no tag core-v0.0.5; raise the floor or fetch the tags"
