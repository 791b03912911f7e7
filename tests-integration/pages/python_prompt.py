"""`python python_prompt.py FOLDER FD` runs the Python of a page: programs and sessions, in order.

Reads requests as lines of JSON from standard input and answers on the descriptor FD. A process of
its own, because a page declares models and configures databases, and both stay.
"""

import ast
import asyncio
import contextlib
import doctest
import inspect
import io
import json
import os
import sys
import traceback
import types
import warnings
from typing import Any

CHECK = doctest.OutputChecker()
AWAIT = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT


class Prompt:
    """The names of one page, and the event loop of its `await`."""

    def __init__(self) -> None:
        self.runner = asyncio.Runner()
        module = types.ModuleType("page")  # models belong to a module
        sys.modules[module.__name__] = module
        self.names = module.__dict__

    def run(self, source: str, line: int, mode: str) -> None:
        """Run a program or one statement, on the event loop only if it awaits."""
        if mode == "single":
            pieces: list[Any] = [compile("\n" * line + source, "<page>", mode, AWAIT)]
        else:
            tree = ast.parse("\n" * line + source, "<page>")
            pieces = [compile(ast.Module([one], []), "<page>", mode, AWAIT) for one in tree.body]
        for code in pieces:
            if not code.co_flags & inspect.CO_COROUTINE:
                exec(code, self.names)
                continue
            function = types.FunctionType(code, self.names)
            self.runner.run(function())

    def program(self, source: str, line: int) -> str:
        """Run a program; return its traceback, or an empty text."""
        try:
            self.run(source, line - 1, "exec")
        except Exception as error:
            frame = error.__traceback__
            while frame is not None and frame.tb_frame.f_code.co_filename != "<page>":
                frame = frame.tb_next
            return "".join(traceback.format_exception(error.with_traceback(frame)))
        return ""

    def session(self, source: str, line: int) -> str:
        """Run a session of `>>>`; return what differs from the page, or an empty text."""
        for example in doctest.DocTestParser().get_examples(source):
            printed = io.StringIO()
            raised = ""
            with contextlib.redirect_stdout(printed):
                try:
                    self.run(example.source, line - 1 + example.lineno, "single")
                except Exception as error:
                    raised = "".join(traceback.format_exception_only(error))
            got = printed.getvalue()
            flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
            same = CHECK.check_output(example.want, got, flags)
            if example.exc_msg is not None or raised:
                same = CHECK.check_output(example.exc_msg or "", raised, flags)
            if not same:
                where = f"line {line + example.lineno}: {example.source}"
                return f"{where}the page says:\n{example.want}printed was:\n{got}{raised}"
        return ""


def main() -> None:
    """Answer requests until standard input ends."""
    folder, descriptor = sys.argv[1], int(sys.argv[2])
    os.chdir(folder)
    sys.path[0] = folder
    warnings.filterwarnings("error", module=r"(page|treefold\w*)(\.|$)")
    prompt = Prompt()
    with os.fdopen(descriptor, "w", encoding="utf-8") as answers:
        for request in sys.stdin:
            asked = json.loads(request)
            if asked["kind"] == "shell":
                from treefold import Application

                application = Application(folder, dev=True)
                application.boot()
                prompt.names["app"] = application
                for name, module in sorted(sys.modules.items()):
                    if name.partition(".")[0] == "Models":
                        public = {k: v for k, v in vars(module).items() if inspect.isclass(v)}
                        prompt.names.update(public)
                answer = ""
            else:
                run = prompt.session if asked["kind"] == "session" else prompt.program
                answer = run(asked["source"], asked["line"])
            sys.stdout.flush()
            print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
