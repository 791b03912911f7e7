"""Refuse hard-to-read words in docstrings and comments below `src` of the given folders.

Without folders, those of all packages. The entries of a section such as `Args:` begin with a small
letter in all packages, but for the commands: what their arguments are is the text of `--help`.
"""

import ast
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

OPENINGS = re.compile(r"(Give|Say|Have|Let|See|Whether)s?\b")
PHRASES = re.compile(
    r"\b(anew|nobody|somebody|whoever|those who|who (is|are|asks?|has|have|wants?)|business of"
    r"|stands in|looks? around|what is to be|the way that)\b",
    re.IGNORECASE,
)
ENTRY = re.compile(
    r"^ +\*{0,2}\w+(, \w+)*: (A|All|An|As|How|It|Its|One|Seconds|The|There|What|Words) .*", re.M
)


def main() -> None:
    folders = sys.argv[1:] or ["packages"]
    files = {file for folder in folders for file in Path(folder).rglob("*.py")}
    sources = sorted(file for file in files if "src" in file.parts)
    findings = [line for file in sources for line in check(file)]
    for finding in findings:
        print(finding, file=sys.stderr)
    if findings or not sources:
        sys.exit(f"{len(findings)} findings in {len(sources)} files")


def check(file: Path) -> Iterator[str]:
    for number, text in docstrings(file):
        sentences = re.split(r"(?<=\.) ", " ".join(text.split()))
        for index, sentence in enumerate(sentences):
            if (index == 0 and OPENINGS.match(sentence)) or PHRASES.search(sentence):
                yield f"{file}:{number}: {sentence}"
        if "commands" not in file.as_posix():
            yield from (f"{file}:{number}: {found[0].strip()}" for found in ENTRY.finditer(text))
    with tokenize.open(file) as lines:
        for token in tokenize.generate_tokens(lines.readline):
            if token.type == tokenize.COMMENT and PHRASES.search(token.string):
                yield f"{file}:{token.start[0]}: {token.string}"


def docstrings(file: Path) -> Iterator[tuple[int, str]]:
    for node in ast.walk(ast.parse(file.read_bytes())):
        value = node.value if isinstance(node, ast.Expr) else None
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            yield value.lineno, value.value  # modules, classes, functions and attributes alike


if __name__ == "__main__":
    main()
