"""One changed answer of the sample costs two files and at most ten lines."""

import shutil
from pathlib import Path

from serving import NewDatabase, migrate

from treefold import Application, Settings
from treefold.testing import TestClient
from treefold_contract import select_version, write_lock
from treefold_http.contract import build_project_lock
from treefold_scaffold import plan_overlay, write_version

CHANGED = '''from treefold import Inherited
from Models.people import Named


async def handler(before: Inherited[Named]) -> dict[str, object]:
    """Return a user, who may have several names."""
    user = await before()
    return {"id": user["id"], "names": [user["name"]]}
'''


def test_a_user_has_several_names_in_the_next_version(
    sample: Path, new_database: NewDatabase, tmp_path: Path
) -> None:
    sample = Path(shutil.copytree(sample, tmp_path / "sample"))
    before = write_lock(select_version(build_project_lock(Application(sample)).lock, "v1"))
    version = write_version(sample, plan_overlay(sample, "3", source="1"))
    file = version / "User/[id]/Get.py"
    file.parent.mkdir(parents=True)
    file.write_text(CHANGED)

    files = [each for each in version.rglob("*") if each.is_file()]
    assert len(files) == 2
    assert sum(len(each.read_text().splitlines()) for each in files) <= 10

    with new_database() as database:
        migrate(sample, database)
        settings = Settings.load(sample, databases={"default": database})
        app = Application(sample, settings=settings)
        assert write_lock(select_version(build_project_lock(app).lock, "v1")) == before
        with TestClient(app, contract="strict") as client:
            new = {"name": "Mary", "email": "mary@example.org", "password": "a long password 7"}
            place = client.post("/v1/user", json=new).headers["location"]
            user = client.get(place).json()
            changed = client.get(place.replace("v1", "v3"))
            missing = [client.get(f"/{version}/user/99") for version in ("v1", "v3")]

    assert changed.json() == {"id": user["id"], "names": ["Mary"]}
    assert [each.status_code for each in missing] == [404, 404]
    assert missing[0].json()["detail"] == missing[1].json()["detail"]
