"""Resolution outcomes, one by one, and default-to-latest: off, latest, and a fixed version."""

import pytest
from serving import Serve, Served, StartFailed, start, write_tree

ECHO = """
async def handler(request):
    return {"file": __file__.rpartition("/Api/")[2], "params": dict(request.path_params)}
"""
TREE = {
    "Api/v1/User/Get.py": ECHO,
    "Api/v1/User/Post.py": ECHO,
    "Api/v1/User/Delete.py": ECHO,
    "Api/v1/User/[id]/Get.py": ECHO,
    "Api/v1/Deep/Er/Get.py": ECHO,
    "Api/v1/Old/Get.py": ECHO,
    "Api/v2/User/Get.py": ECHO,
    "Api/v2/Read/Get.py": ECHO,
    "Api/v10/User/Get.py": ECHO,
    "Api/v10/User/[id]/Get.py": ECHO,
    "Api/v10/Write/Post.py": ECHO,
    "Api/v10/Get.py": ECHO,
}


@pytest.fixture(scope="module")
def app(serve: Serve) -> Served:
    return serve(TREE)


@pytest.fixture(scope="module")
def latest(serve: Serve) -> Served:
    return serve(TREE, default_version="latest")


@pytest.fixture(scope="module")
def fixed(serve: Serve) -> Served:
    return serve(TREE | {"treefold.toml": 'default_version = "v2"'})


def test_a_handler_for_this_method_and_path_runs(app: Served) -> None:
    answer = app.get("/v1/user")
    assert (answer.status, answer.json()["file"]) == (200, "v1/User/Get.py")


@pytest.mark.parametrize(
    "target",
    [
        pytest.param("/v1/nothing", id="the path does not exist for any method"),
        pytest.param("/v1/user/1/2", id="below a path that exists"),
        pytest.param("/v1/deep", id="above a path that exists"),
        pytest.param("/user", id="no version prefix and no default version"),
        pytest.param("/", id="no segment at all"),
        pytest.param("/v99/user", id="the version is explicit but unknown"),
        pytest.param("/v99", id="an unknown version alone"),
        pytest.param("/v1/read", id="the path exists under another version only"),
        pytest.param("/v01/user", id="a version is compared as text"),
        pytest.param("/docs", id="docs are off in production"),
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST", "OPTIONS"])
def test_404_when(app: Served, method: str, target: str) -> None:
    answer = app.request(method, target)
    assert answer.status == 404
    assert answer.values("allow") == []


@pytest.mark.parametrize("method", ["PUT", "PATCH", "HEAD", "OPTIONS"])
def test_405_when_the_path_exists_for_other_methods(app: Served, method: str) -> None:
    answer = app.request(method, "/v1/user")
    assert answer.status == 405
    assert answer.value("allow") == "DELETE, GET, POST"


def test_405_lists_the_methods_of_that_exact_path_only(app: Served) -> None:
    assert app.request("PUT", "/v1/user/1").value("allow") == "GET"


@pytest.mark.parametrize(
    ("target", "file", "params"),
    [
        ("/user", "v10/User/Get.py", {}),
        ("/user/7", "v10/User/[id]/Get.py", {"id": "7"}),
        ("//user//7/", "v10/User/[id]/Get.py", {"id": "7"}),
        ("/user/a%2Fb", "v10/User/[id]/Get.py", {"id": "a/b"}),
        ("/", "v10/Get.py", {}),
    ],
)
def test_default_to_latest_serves_the_highest_number(
    latest: Served, target: str, file: str, params: dict[str, str]
) -> None:
    answer = latest.get(target)
    assert answer.status == 200
    assert answer.json() == {"file": file, "params": params}


def test_default_to_latest_logs_the_unversioned_path_and_the_version_served(latest: Served) -> None:
    answer = latest.get("/user/7")
    wanted = "no version in GET /user/7 -> served v10"

    def find(lines: list[str]) -> list[str]:
        return [line for line in lines if wanted in line and answer.id in line]

    assert len(latest.wait_for(find)) == 1


def test_default_to_latest_logs_nothing_about_a_request_with_a_version(latest: Served) -> None:
    answer = latest.get("/v1/user")
    latest.line(answer)
    logged = latest.wait_for(lambda lines: [line for line in lines if answer.id in line])
    assert len(logged) == 1


def test_default_to_latest_logs_no_secret_of_the_query(latest: Served) -> None:
    answer = latest.get("/user?token=hunter2")
    latest.line(answer)
    logged = latest.wait_for(lambda lines: [line for line in lines if answer.id in line])
    assert len(logged) == 2
    assert "hunter2" not in "".join(logged)


@pytest.mark.parametrize(
    ("method", "target"),
    [
        pytest.param("GET", "/old", id="a path of an older version only"),
        pytest.param("GET", "/nothing", id="a path of no version"),
        pytest.param("GET", "/v99/user", id="an explicit unknown version"),
        pytest.param("GET", "/v99", id="an explicit unknown version alone"),
        pytest.param("GET", "/V10/user", id="an upper-case version is a plain segment"),
    ],
)
def test_default_to_latest_is_404_for(latest: Served, method: str, target: str) -> None:
    assert latest.request(method, target).status == 404


def test_default_to_latest_is_405_where_the_latest_version_has_other_methods(
    latest: Served,
) -> None:
    answer = latest.get("/write")
    assert (answer.status, answer.value("allow")) == (405, "POST")


def test_default_to_latest_leaves_requests_with_a_version_alone(latest: Served) -> None:
    assert latest.get("/v1/user").json()["file"] == "v1/User/Get.py"


def test_a_fixed_default_version_serves_that_version(fixed: Served) -> None:
    assert fixed.get("/user").json()["file"] == "v2/User/Get.py"
    assert fixed.get("/write").status == 404


def test_a_fixed_default_version_logs_no_line_of_its_own(fixed: Served) -> None:
    answer = fixed.get("/user")

    def find(lines: list[str]) -> list[str]:
        return [line for line in lines if answer.id in line]

    assert len(fixed.wait_for(find)) == 1


def test_a_default_version_that_is_neither_latest_nor_a_version_stops_the_start(
    kind: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    root = tmp_path_factory.mktemp("project")
    write_tree(root, TREE | {"treefold.toml": 'default_version = "newest"'})
    with pytest.raises(StartFailed) as failure:
        start(kind, root)
    assert (
        "Setting default_version must be 'latest' or a version such as 'v1', got 'newest'"
        in failure.value.stderr
    )
