"""How the findings of `check` look in each format."""

import json
from collections.abc import Sequence
from dataclasses import replace

import pytest

from treefold_cli._checks.findings import FORMATS, Kind, Problem, Report, render_report

PROBLEMS = [
    Problem(Kind.DUPLICATE, "GET /v1/user defined more than once", ("Api/v1/USER/Get.py", "b.py")),
    Problem(Kind.SKIPPED, "not under a version folder (vN)", ("Api/User/Get.py",)),
    Problem(Kind.BROKEN, "NameError: x", ("Api/v1/X/Get.py",), detail="Traceback ...", line=3),
    Problem(Kind.BROKEN, "hooks.py cannot be used: NameError: x"),
    Problem(Kind.LINT, "One position", ("a.py", "c.py"), code="bracket-names"),
    Problem(Kind.NOTE, "init is async"),
]


def lines(
    form: str, problems: Sequence[Problem] = PROBLEMS, *, strict: bool = False, routes: int = 7
) -> list[str]:
    return list(render_report(Report(problems, routes, strict=strict), form=form))


def test_text_names_each_problem_and_its_files():
    assert lines("text") == [
        "[dup] GET /v1/user defined more than once",
        "  Api/v1/USER/Get.py",
        "  b.py",
        "[skipped] Api/User/Get.py: not under a version folder (vN)",
        "[broken] Api/v1/X/Get.py: NameError: x",
        "[broken] hooks.py cannot be used: NameError: x",
        "[lint] One position",
        "  a.py",
        "  c.py",
        "[note] init is async",
        "7 routes: 1 duplicate, 2 broken, 1 skipped, 1 lint, 1 note",
    ]


def test_text_without_problems_is_one_line_of_counts():
    assert lines("text", []) == ["7 routes: 0 duplicate, 0 broken, 0 skipped"]
    assert lines("text", [], routes=1) == ["1 route: 0 duplicate, 0 broken, 0 skipped"]


def test_json_carries_every_field():
    (line,) = lines("json", PROBLEMS[2:3])
    assert json.loads(line) == {
        "ok": False,
        "routes": 7,
        "problems": [
            {
                "kind": "broken",
                "message": "NameError: x",
                "files": ["Api/v1/X/Get.py"],
                "code": "",
                "detail": "Traceback ...",
                "cause": "",
                "line": 3,
            }
        ],
    }


@pytest.mark.parametrize(("problem", "ok"), [(PROBLEMS[1], True), (PROBLEMS[0], False)])
def test_json_is_ok_with_skipped_files_only(problem: Problem, ok: bool):
    assert json.loads(lines("json", [problem])[0])["ok"] is ok


def test_github_annotates_each_finding_once_and_at_its_line():
    assert lines("github") == [
        "::error file=b.py::[dup] GET /v1/user defined more than once: Api/v1/USER/Get.py, b.py",
        "::warning file=Api/User/Get.py::[skipped] not under a version folder (vN)",
        "::error file=Api/v1/X/Get.py,line=3::[broken] NameError: x",
        "::error::[broken] hooks.py cannot be used: NameError: x",
        "::error file=c.py::[lint] One position: a.py, c.py",
        "::error::[note] init is async",
    ]


def test_github_commands_cannot_be_injected():
    hostile = Problem(Kind.BROKEN, "100%\r\n::error::owned", ("a,line=1:b%\n.py",))
    assert lines("github", [hostile]) == [
        "::error file=a%2Cline=1%3Ab%25%0A.py::[broken] 100%25%0D%0A::error::owned"
    ]


@pytest.mark.parametrize("kind", Kind)
def test_only_a_skipped_file_is_no_failure_and_strict_leaves_out_none(kind: Kind):
    problem = Problem(kind, "something")
    assert problem.fails_check(strict=False) is (kind is not Kind.SKIPPED)
    assert problem.fails_check(strict=True)


OPEN = Problem(
    Kind.DEPLOY,
    "any Host is answered on 0.0.0.0:80",
    ("Middleware/__init__.py",),
    code="hosts-any",
    attack="sends a Host of his own",
    write="TrustedHosts(['api.example.com'])",
)
SLOW = replace(OPEN, code="slow-clients", is_severe=False)


def test_a_mere_warning_of_a_deployment_fails_only_if_strict():
    assert [OPEN.fails_check(strict=False), SLOW.fails_check(strict=False)] == [True, False]
    assert SLOW.fails_check(strict=True)


def test_text_of_a_deployment_says_what_an_attacker_does_and_what_to_write():
    assert lines("text", [OPEN, SLOW]) == [
        "[deploy] hosts-any (severe): any Host is answered on 0.0.0.0:80",
        "  an attacker sends a Host of his own",
        "  write in Middleware/__init__.py:",
        "    TrustedHosts(['api.example.com'])",
        "[deploy] slow-clients (warning): any Host is answered on 0.0.0.0:80",
        "  an attacker sends a Host of his own",
        "  write in Middleware/__init__.py:",
        "    TrustedHosts(['api.example.com'])",
        "7 routes: 0 duplicate, 0 broken, 0 skipped, 2 of the deployment",
    ]


def test_other_formats_of_a_deployment_carry_the_same():
    (record,) = json.loads(lines("json", [SLOW])[0])["problems"]
    assert (record["kind"], record["code"], record["is_severe"]) == ("deploy", SLOW.code, False)
    assert (record["attack"], record["write"]) == (SLOW.attack, SLOW.write)
    assert lines("github", [OPEN, SLOW]) == [
        f"::{level} file=Middleware/__init__.py::[deploy] any Host is answered on 0.0.0.0:80"
        f" ({code}); an attacker sends a Host of his own; write: TrustedHosts(['api.example.com'])"
        for level, code in (("error", "hosts-any"), ("warning", "slow-clients"))
    ]


def test_a_skipped_file_is_an_error_of_a_strict_report():
    assert json.loads(lines("json", [PROBLEMS[1]], strict=True)[0])["ok"] is False
    assert lines("github", [PROBLEMS[1]], strict=True)[0].startswith("::error file=")


def test_the_formats_are_those_of_the_command():
    assert FORMATS == ("text", "json", "github")
