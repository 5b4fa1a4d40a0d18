"""A task of one's own in an app: what the terms say about it, and the file that comes with them."""

from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

import tomlkit

from fedaccord.errors import InvalidInput
from fedaccord.training.code import Code, is_elsewhere, read_code, split_name

_LEFT_OUT = ("test_*.py", "*_test.py")
"""What Flower never takes into an app."""


@dataclass(frozen=True)
class AppTask:
    """The task of an app."""

    terms: dict[str, str]
    """The part of the terms' `[training]` that is about it."""
    code: Code | None = None
    """What has to be copied into the app."""

    @property
    def places(self) -> list[Path]:
        """Where the code is found before it is in the app."""
        return [] if self.code is None else [self.code.place]


def task_for_app(task: str) -> AppTask:
    """A task as `--task` names it: a name, `module:function`, or `FILE.py:function`.

    The code of a module is found on everyone's Python path; a file comes with the app.
    """
    if ":" not in task:
        return AppTask({"task": task})
    code = read_code(task)
    module, function = split_name(task)
    if not module.endswith(".py"):
        return AppTask({"task": task, "code": code.digest})
    (name,) = code.files
    if any(fnmatch(name, pattern) for pattern in _LEFT_OUT):
        raise InvalidInput(f"Flower takes no file called {name} into an app: rename it")
    if is_elsewhere(code):
        raise InvalidInput(f"there is another module called {code.name!r}: rename {name}")
    return AppTask({"task": f"{code.name}:{function}", "code": code.digest}, code)


def add_code(app: Path, code: Code) -> None:
    """Put the files of a task into an app, and into what Flower sends to the members."""
    for name, source in code.files.items():
        (app / name).write_bytes(source)
    path = app / "pyproject.toml"
    project = tomlkit.parse(path.read_text("utf-8"))
    project["tool"]["flwr"]["app"]["fab-include"].extend(code.files)
    path.write_text(tomlkit.dumps(project), encoding="utf-8")
