"""The workflows of the code host: they run commands that exist, with pinned actions and few rights.

What zizmor checks is not repeated here; `hatch run check` runs it.
"""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

WORKFLOWS = ("ci", "release")
PROGRAMS = {"pytest", "zizmor"}
"""Programs of the default environment, which `hatch run` runs as it runs scripts."""


def text_of(repository: Path, name: str) -> str:
    return (repository / ".github" / "workflows" / f"{name}.yml").read_text(encoding="utf-8")


def jobs_of(repository: Path, name: str) -> dict[str, Any]:
    return yaml.safe_load(text_of(repository, name))["jobs"]


def test_there_is_no_other_workflow(repository: Path) -> None:
    found = {path.stem for path in (repository / ".github" / "workflows").iterdir()}
    assert found == set(WORKFLOWS)


def test_no_audit_is_left_out_and_each_exception_has_its_reason(repository: Path) -> None:
    scripts = tomllib.loads((repository / "hatch.toml").read_text())["envs"]["default"]["scripts"]
    assert "--persona=auditor" in scripts["workflows"]
    for name in WORKFLOWS:
        lines = text_of(repository, name).splitlines()
        excused = [place for place, line in enumerate(lines) if "zizmor: ignore" in line]
        assert [lines[place] for place in excused if "# " not in lines[place - 1]] == []


@pytest.mark.parametrize("name", WORKFLOWS)
def test_actions_are_pinned_by_digest_with_their_version(repository: Path, name: str) -> None:
    used = re.findall(r"uses: (.*)", text_of(repository, name))
    assert used
    for line in used:
        assert re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", line), line


def test_one_action_has_one_digest(repository: Path) -> None:
    text = "".join(text_of(repository, name) for name in WORKFLOWS)
    pins = set(re.findall(r"uses: ([\w/-]+)@(\w+ # \S+)", text))
    assert len({action for action, _ in pins}) == len(pins)


@pytest.mark.parametrize("name", WORKFLOWS)
def test_every_command_of_a_job_exists(repository: Path, name: str) -> None:
    environments = tomllib.loads((repository / "hatch.toml").read_text())["envs"]
    scripts = set(environments["default"]["scripts"])
    for environment, table in environments.items():
        scripts |= {f"{environment}:{script}" for script in table.get("scripts", ())}
    text = text_of(repository, name)
    ran = set(re.findall(r"python tools/run\.py (\S+)", text))
    assert ran <= scripts | PROGRAMS
    for tool in re.findall(r"python (tools/[\w./]+)", text):
        assert (repository / tool).exists()


def test_jobs_write_nothing_but_where_a_release_needs_it(repository: Path) -> None:
    for name in WORKFLOWS:
        assert yaml.safe_load(text_of(repository, name))["permissions"] in (
            {},
            {"contents": "read"},
        )
    granted = {
        (job, right)
        for name in WORKFLOWS
        for job, told in jobs_of(repository, name).items()
        for right, level in told.get("permissions", {}).items()
        if level != "read"
    }
    assert granted == {
        ("attest", "id-token"),
        ("attest", "attestations"),
        ("publish", "id-token"),
        ("announce", "contents"),
        ("deploy", "pages"),
        ("deploy", "id-token"),
    }


def test_a_release_is_published_after_its_tests_on_every_supported_version(
    repository: Path,
) -> None:
    jobs = jobs_of(repository, "release")
    assert jobs["publish"]["needs"] == ["verify", "elsewhere", "site", "attest"]
    assert jobs["verify"]["needs"] == ["plan", "build"]
    manifest = tomllib.loads((repository / "packages" / "treefold" / "pyproject.toml").read_text())
    classifiers = " ".join(manifest["project"]["classifiers"])
    supported = re.findall(r"Python :: (3\.\d+)", classifiers)
    assert jobs["verify"]["strategy"]["matrix"]["python"] == supported
    tested = jobs_of(repository, "ci")["unit"]["strategy"]["matrix"]["python"]
    assert tested == [*supported, "3.14t"]


def test_a_release_is_tested_under_every_condition_of_elsewhere(repository: Path) -> None:
    jobs = jobs_of(repository, "release")
    (command,) = [step["run"] for step in jobs["plan"]["steps"] if step.get("id") == "plan"]
    assert 'echo "conditions=$(python tools/elsewhere --names)" >> "$GITHUB_OUTPUT"' in command
    matrix = jobs["elsewhere"]["strategy"]["matrix"]
    assert matrix == {"condition": "${{ fromJSON(needs.plan.outputs.conditions) }}"}
    step = jobs["elsewhere"]["steps"][-1]
    assert step["run"] == 'python tools/run.py elsewhere "$CONDITION"'
    assert step["env"] == {"CONDITION": "${{ matrix.condition }}"}


def test_a_release_attests_each_artefact_with_its_bill(repository: Path) -> None:
    jobs = jobs_of(repository, "release")
    assert "python tools/run.py sbom dist bills" in str(jobs["build"]["steps"])
    used = [step for step in jobs["attest"]["steps"] if "attest-" in step.get("uses", "")]
    assert used[0]["with"] == {"subject-path": "dist/*"}
    for step, ending in zip(used[1:], ("-py3-none-any.whl", ".tar.gz"), strict=True):
        name = f"${{{{ needs.plan.outputs.artefact }}}}{ending}"
        assert step["with"] == {
            "subject-path": f"dist/{name}",
            "sbom-path": f"bills/{name}.cdx.json",
        }


def test_the_pages_are_published_after_a_release_of_the_umbrella(repository: Path) -> None:
    jobs = jobs_of(repository, "release")
    assert jobs["deploy"]["needs"] == ["plan", "announce"]
    assert jobs["deploy"]["if"] == "needs.plan.outputs.folder == 'treefold'"
    rehearsed = [step.get("run", "") for step in jobs["site"]["steps"]]
    assert "python tools/run.py docs-rehearsal" in rehearsed
    (joined,) = [s["run"] for s in jobs["deploy"]["steps"] if "site.py" in s.get("run", "")]
    assert 'select(startswith("treefold-v"))' in joined


@pytest.mark.parametrize(
    ("tag", "matches"),
    [("router-v0.2.0", True), ("docs-ui-v10.0.1", True), ("v0.2.0", False), ("router-v0.2", False)],
)
def test_tags_of_packages_start_a_release(repository: Path, tag: str, matches: bool) -> None:
    (pattern,) = yaml.safe_load(text_of(repository, "release"))[True]["push"]["tags"]
    expression = re.escape(pattern).replace(r"\*", "[^/]*")
    expression = expression.replace(r"\[0\-9\]\+", "[0-9]+")
    assert bool(re.fullmatch(expression, tag)) is matches
