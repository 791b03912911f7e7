"""An application of treefold behind `python -m treefold_server`, without the command line."""

import re
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from lossless_clients import wait_until_served


@pytest.mark.parametrize("workers", ["1", "2"])
def test_an_application_is_served_without_the_command_line(tmp_path: Path, workers: str) -> None:
    handler = tmp_path / "Api/v1/Health/Get.py"
    handler.parent.mkdir(parents=True)
    handler.write_text("async def handler(request):\n    return {'status': 'served'}\n")
    command = [sys.executable, "-m", "treefold_server", "treefold.asgi:app", "--port", "0"]
    with subprocess.Popen(
        [*command, "--lifespan", "on", "--workers", workers],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        try:
            output = ""
            while (found := re.search(r" on http://(\S+):(\d+)", output)) is None:
                output += process.stderr.readline() or pytest.fail(output)
            wait_until_served((found[1], int(found[2])))
            url = f"http://{found[1]}:{found[2]}/v1/health"
            with urllib.request.urlopen(url, timeout=60) as answer:
                assert answer.read() == b'{"status":"served"}'
            process.send_signal(signal.SIGTERM)
            output += process.stderr.read()
            assert process.wait(60) == 0
        finally:
            process.kill()
    assert "GET /v1/health 200 " in output
    assert "Traceback" not in output
