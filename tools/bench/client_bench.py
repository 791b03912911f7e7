"""How fast generated clients are checked and imported: `hatch run client-bench`.

A program with 100 calls uses a client of 2,000 operations, and one of 10,000. Of each the median of
three runs is shown beside its bar; a figure above its bar ends the command with 1.
"""

import gzip
import json
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from treefold_contract import Lock, read_lock, write_python_client, write_typescript_client

sys.path.append(str(Path(__file__).resolve().parents[1]))
sys.path.append(str(Path(__file__).resolve().parents[2] / "packages" / "contract" / "tests"))

from large_locks import write_large_lock
from typescript_compiler import fetch_compiler, run_compiler

RUNS = 3
CALLS = 100
IMPORT = """
import time, httpx
begin = time.perf_counter()
import shop
print(time.perf_counter() - begin)
"""
OPTIONS = {
    "strict": True,
    "noEmit": True,
    "target": "es2022",
    "module": "nodenext",
    "lib": ["es2022", "dom", "dom.iterable"],
    "types": [],
}


def main() -> None:
    failed: list[str] = []

    def show(what: str, value: float, bar: float, unit: str) -> None:
        print(f"{what:<48} {value:>10.4g} {unit:<6} (at most {bar:g})")
        if value > bar:
            failed.append(what)

    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        (work / "typescript").mkdir()
        compiler = fetch_compiler(work / "typescript")
        for operations, most in ((2000, 2.0), (10_000, 4.0)):
            lock = read_lock(write_large_lock(operations).replace("/thing-", "/thing"))
            show_writing(lock)
            project = write_typescript(work / f"ts-{operations}", lock)
            runs = [run_tsc(compiler, project) for _ in range(RUNS)]
            took = statistics.median(seconds for seconds, _ in runs)
            show(f"tsc, {operations} operations", took, most, "s")
            show(f"instantiations, {operations} operations", runs[0][1], 20_000, "")
            project = write_python(work / f"py-{operations}", lock)
            took = statistics.median(run_pyright(project) for _ in range(RUNS))
            show(f"pyright, {operations} operations", took, 2.0 * operations / 2000, "s")
        costs = sorted(run_import(project) for _ in range(5))
        show("import of the module beyond httpx", costs[0] * 1000, 5, "ms")
        for name, text in write_typescript_client(Lock()).items():
            if name.endswith(".js"):
                size = len(gzip.compress(text.encode(), 9, mtime=0))
                show(f"{name} after gzip -9", size, 1500, "bytes")
    if failed:
        sys.exit(f"above the bar: {', '.join(failed)}")


def show_writing(lock: Lock) -> None:
    """Print the seconds that it takes to write the clients of a lock."""
    for write in (write_typescript_client, write_python_client):
        begin = time.perf_counter()
        write(lock)
        seconds = time.perf_counter() - begin
        print(f"{write.__name__}, {len(lock.routes)} operations: {seconds:.3g} s")


def write_typescript(folder: Path, lock: Lock) -> Path:
    folder.mkdir()
    for name, text in write_typescript_client(lock, name="shop").items():
        (folder / name).write_text(text, encoding="utf-8")
    lines = ['import { connect } from "./shop.js";', 'const { v1 } = connect("https://x.org");']
    for number in range(CALLS):
        place = f"v1.thing{number}"
        lines.append(f"export const a{number} = (await {place}(7).get()).owner;")
        lines.append(f"const r{number} = await {place}(7).get.safe();")
        lines.append(f"export const b{number} = r{number}.ok ? r{number}.data.name : '';")
    (folder / "use.ts").write_text("\n".join(lines), encoding="utf-8")
    settings = {"compilerOptions": OPTIONS, "files": ["use.ts"]}
    (folder / "tsconfig.json").write_text(json.dumps(settings), encoding="utf-8")
    (folder / "package.json").write_text('{"type": "module"}', encoding="utf-8")
    return folder


def run_tsc(compiler: Path, project: Path) -> tuple[float, int]:
    """Return the seconds and the instantiations that the compiler says."""
    done = run_compiler(compiler, project, "--extendedDiagnostics")
    if done.returncode:
        sys.exit(done.stdout)
    found = dict(re.findall(r"^(.+?): +([\d.]+)s?$", done.stdout, re.MULTILINE))
    return float(found["Total time"]), int(found["Instantiations"])


def write_python(folder: Path, lock: Lock) -> Path:
    for name, text in write_python_client(lock, name="shop").items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    lines = ["import shop", "", "with shop.connect_sync('https://x.org') as client:"]
    lines += [f"    print(client.v1.thing{number}(7).get()['name'])" for number in range(CALLS)]
    (folder / "use.py").write_text("\n".join(lines), encoding="utf-8")
    settings = {"typeCheckingMode": "strict", "include": ["use.py"]}
    (folder / "pyrightconfig.json").write_text(json.dumps(settings), encoding="utf-8")
    return folder


def run_pyright(project: Path) -> float:
    """Return the seconds that pyright says, without the start of node."""
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)
    found = json.loads(done.stdout)
    if found["summary"]["errorCount"]:
        sys.exit(done.stdout)
    return float(found["summary"]["timeInSec"])


def run_import(project: Path) -> float:
    command = [sys.executable, "-c", IMPORT]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, check=True)
    return float(done.stdout)


if __name__ == "__main__":
    main()
