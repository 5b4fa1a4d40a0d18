"""The code of a task of one's own: found by name, pinned by a digest, run from what was digested.

A task is named `module:function`. Importing a module runs it, so its source is read and its digest
taken first, and what is run afterwards are exactly the bytes that were read: neither a file that
changes in between nor compiled code beside it is used.

What belongs to the code: the file of a module that stands alone (`model.py`), or every module of
the package that it is in. The digest is the SHA-256 of what `sha256sum` prints for these files, in
the order of their paths, relative to where the module or package is found. So it is the same
wherever they are. Line ends count as one newline each, whatever the system writes, as they do for
Python itself.

What does not belong to it: other packages that it imports (PyTorch among them), compiled
extensions, and files that are not Python.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from importlib import import_module
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from importlib.util import spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

from fedaccord.errors import FedaccordError, InvalidInput

_PACKAGE = "__init__"


@dataclass(frozen=True)
class Code:
    """The source of a module, or of the package that it is in."""

    name: str
    """Of the module or the package: what stands before the first dot."""
    place: Path
    """The directory in which it was found."""
    files: dict[str, bytes]
    """The source of each file by its path in that directory, in order; line ends are newlines."""

    @property
    def digest(self) -> str:
        """What terms have as their `training.code`."""
        lines = (f"{sha256(text).hexdigest()}  {path}\n" for path, text in self.files.items())
        return sha256("".join(lines).encode()).hexdigest()

    def path_of(self, module: str) -> Path | None:
        """The file of a module of this code, if there is one."""
        stem = module.replace(".", "/")
        for path in (f"{stem}/{_PACKAGE}.py", f"{stem}.py"):
            if path in self.files:
                return self.place / path
        return None


def split_name(name: str) -> tuple[str, str]:
    """The module and the function of `module:function`; the module may be the path of a file.

    >>> split_name("models/wide.py:build")
    ('models/wide.py', 'build')
    """
    module, _, function = name.rpartition(":")
    if not module or not function.isidentifier():
        raise InvalidInput(f"{name!r} is not of the form module:function")
    return module, function


def read_code(name: str, places: Sequence[Path] = ()) -> Code:
    """The code of `module:function`, which is read and not run.

    It is looked for in `places`, then on the Python path. Instead of a module the path of a file
    may be given (`model.py:build`).
    """
    module, _ = split_name(name)
    if module.endswith(".py"):
        return _code_of_file(Path(module))
    if not all(part.isidentifier() for part in module.split(".")):
        raise InvalidInput(f"{name!r} is not of the form module:function")
    top = module.split(".")[0]
    origin = _origin(top, places)
    if origin is None or origin.suffix != ".py":
        where = "" if not places else f"in {', '.join(map(str, places))} or "
        raise InvalidInput(
            f"{name}: there is no Python source of {top!r} {where}on the Python path"
        )
    code = _code_of_file(origin) if origin.stem != _PACKAGE else _code_of_package(origin.parent)
    if code.path_of(module) is None:
        raise InvalidInput(f"{name}: there is no module {module} in {code.place / top}")
    return code


def is_here(name: str, places: Sequence[Path]) -> bool:
    """Whether there is anything by the name of the module, in `places` or on the Python path.

    >>> is_here("fedaccord.training.task:softmax", ()), is_here("model_of_theirs:build", ())
    (True, False)
    """
    return _origin(split_name(name)[0].split(".")[0], places) is not None


def _origin(top: str, places: Sequence[Path]) -> Path | None:
    """The file that would be imported, without importing it."""
    spec = PathFinder.find_spec(top, [str(place) for place in places])
    for finder in sys.meta_path:
        if spec is None and finder is not _FINDER:
            spec = finder.find_spec(top, None)
    return None if spec is None or spec.origin is None else Path(spec.origin)


def is_elsewhere(code: Code) -> bool:
    """Whether something else of that name is on the Python path: one of them would hide the other.

    >>> from pathlib import Path
    >>> is_elsewhere(Code("torch", Path("/home/me"), {"torch.py": b""}))
    True
    """
    found = _origin(code.name, ())
    return found is not None and found.resolve() != code.path_of(code.name)


def _code_of_file(path: Path) -> Code:
    if not path.stem.isidentifier() or path.stem in sys.stdlib_module_names:
        why = "it is one of Python's own" if path.stem.isidentifier() else "it is not an identifier"
        raise InvalidInput(f"{path}: cannot be a module called {path.stem!r}, as {why}")
    return Code(path.stem, path.parent.resolve(), {path.name: _source(path)})


def _code_of_package(folder: Path) -> Code:
    """All modules of a package; scripts with names that cannot be imported are not among them."""
    place = folder.parent.resolve()
    found = [path.relative_to(place) for path in (place / folder.name).rglob("*.py")]
    modules = sorted(
        path.as_posix() for path in found if all(map(str.isidentifier, path.with_suffix("").parts))
    )
    return Code(folder.name, place, {path: _source(place / path) for path in modules})


def _source(path: Path) -> bytes:
    try:
        return path.read_bytes().replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    except OSError as error:
        raise InvalidInput(f"cannot be read: {error.strerror}", str(path)) from None


def check_code(name: str, digest: str, places: Sequence[Path] = ()) -> Code:
    """The code of `module:function`, if it is the one that was agreed on; it is not run."""
    code = read_code(name, places)
    if code.digest != digest:
        raise InvalidInput(
            f"{name}: by the terms its code has the digest {digest}, but what is in {code.place} "
            f"has {code.digest}"
        )
    return code


# --- Running it ----------------------------------------------------------------------------


def run_code(name: str, code: Code) -> Any:
    """What `module:function` is, after its module was run from the source in `code`.

    A module that was imported before, by the app itself for example, is not run again.
    """
    module, function = split_name(name)
    module = code.name if module.endswith(".py") else module
    if _FINDER not in sys.meta_path:
        sys.meta_path.insert(0, _FINDER)
    _FINDER.hold(code)
    try:
        imported = import_module(module)
        found = getattr(imported, function)
    except Exception as error:
        raise FedaccordError(
            f"{name}: cannot be imported ({type(error).__name__}: {error})"
        ) from error
    if Path(imported.__file__ or "").resolve() != (code.path_of(module) or Path()).resolve():
        raise InvalidInput(f"{name}: another module {module} is in use, {imported.__file__}")
    return found


class _Finder(MetaPathFinder):
    """Finds the modules of all code that was read, before Python looks for files."""

    def __init__(self) -> None:
        self._held: dict[str, Code] = {}

    def hold(self, code: Code) -> None:
        """Find the modules of this code from now on; other code of that name is forgotten."""
        if self._held.get(code.name) == code:
            return
        self._held[code.name] = code
        for name, module in list(sys.modules.items()):
            mine = isinstance(getattr(module, "__loader__", None), _HeldSource)
            if mine and name.split(".")[0] == code.name:
                del sys.modules[name]

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,  # noqa: ARG002  Python passes it, as well as the next
        target: ModuleType | None = None,  # noqa: ARG002
    ) -> ModuleSpec | None:
        """Where a module is that is part of such code."""
        code = self._held.get(fullname.split(".", maxsplit=1)[0])
        found = None if code is None else code.path_of(fullname)
        if code is None or found is None:
            return None
        source = code.files[found.relative_to(code.place).as_posix()]
        inside = [str(found.parent)] if found.stem == _PACKAGE else None
        loader = _HeldSource(fullname, str(found), source)
        return spec_from_file_location(
            fullname, found, loader=loader, submodule_search_locations=inside
        )


class _HeldSource(SourceFileLoader):
    """Runs source that is already there."""

    def __init__(self, fullname: str, path: str, source: bytes) -> None:
        super().__init__(fullname, path)
        self._source = source

    def get_data(self, path: str) -> bytes:
        """The source, or another file of the package."""
        return self._source if path == self.path else super().get_data(path)

    def path_stats(self, path: str) -> Any:
        """Say that nothing is known of the file, so that no compiled code is looked for."""
        raise OSError(f"{path}: is not read again")


_FINDER = _Finder()
