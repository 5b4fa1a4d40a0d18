"""Whether the tests notice small faults: mutants of the packages whose verdicts are relied on.

`python -m tests.mutants agreement game/law.py --minutes 5 --seed 1` (`make mutants`) changes one
thing at a time in a module, such as `<` to `<=`, and runs the quick tests that execute that line:
the quickest of them, and if those notice nothing, those that execute most of the module.
A mutant that no test fails on has survived: a test is missing, or the change makes no difference.
Those that were reviewed and make none are in `EQUIVALENT`, each with the reason.

No file is changed. Each mutant is a process forked from one that has imported the libraries; there,
the module is compiled from the changed syntax tree when it is imported.
"""

import argparse
import ast
import contextlib
import copy
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import os
import pickle
import random
import resource
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import coverage
import pytest

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "fedaccord"
EQUIVALENT = Path(__file__).with_name("mutants_equivalent.txt")
TESTS = {
    "agreement": ("agreement", "properties", "protocol/test_own_row.py"),
    "game": ("game", "properties"),
    "protocol": ("protocol",),
    "audits": ("audits",),
    "signing": ("signing", "signed/test_fuzz.py", "ledger/test_chain.py"),
    "ledger": ("ledger", "contracts"),
}
"""The tests for each package, of which those that are not slow run, and its own doctests."""
SECONDS = 15.0
"""Of all tests that execute a line, the quickest run, for as long as this altogether."""
MORE_SECONDS = 60.0
"""If those notice nothing: as long again as this, the others that execute most of the module."""
SLOWER, SPARE = 3.0, 20.0
"""A mutant that takes so many times as long as its tests usually do, and so many seconds more,
is stuck, which the tests notice."""
MEMORY = 4 << 30
LIBRARIES = {"numpy", "scipy", "pydantic", "cryptography", "sqlalchemy"}
"""Imported once, if the tests need them; the package itself is imported for each mutant."""
BAR = 0.9
UNCHANGED = {"frozen", "axis"}
"""Arguments: no test writes to a record, and the last of two axes is -1 as well as 1."""

COMPARED = {
    ast.Lt: (ast.LtE, ast.GtE), ast.LtE: (ast.Lt, ast.Gt), ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt), ast.Eq: (ast.NotEq,), ast.NotEq: (ast.Eq,), ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,), ast.In: (ast.NotIn,), ast.NotIn: (ast.In,),
}  # fmt: skip
COMPUTED = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}  # fmt: skip
NAMES = {"min": "max", "minimum": "maximum", "any": "all", "argmin": "argmax", "nanmin": "nanmax"}
NAMES |= {new: old for old, new in NAMES.items()}


class Mutant(NamedTuple):
    """One change to a module."""

    module: str
    """Below the package, as in `agreement/watch.py`."""
    line: int
    place: str
    """The function or class."""
    change: str
    number: int

    @property
    def name(self) -> str:
        """What it is called in the list of equivalent ones; it has no line, which changes often."""
        return f"{self.module} {self.place}: {self.change}"


class Mutator(ast.NodeTransformer):
    """Lists the changes that a module allows, and makes the one with a given number."""

    def __init__(self, module: str, number: int | None = None) -> None:
        self.module, self.number = module, number
        self.places: list[str] = []
        self.found: list[Mutant] = []
        self.around: ast.AST | None = None

    def visit(self, node: ast.AST) -> Any:
        """The node, or what it is changed to."""
        if isinstance(node, ast.Raise | ast.JoinedStr | ast.Import | ast.ImportFrom):
            return self.chosen(node) or node  # the wording of errors is tested by people
        if isinstance(node, ast.keyword) and node.arg in UNCHANGED:
            return node
        if not isinstance(node, ast.FunctionDef | ast.ClassDef):
            if (change := self.chosen(node)) is not None:
                return change
            self.around, before = node, self.around
            changed = super().visit(node)
            self.around = before
            return changed
        self.places.append(node.name)
        node.body = [self.visit(child) for child in node.body]  # neither decorators nor annotations
        if isinstance(node, ast.FunctionDef):
            node.args.defaults = [self.visit(value) for value in node.args.defaults]
            node.args.kw_defaults = [value and self.visit(value) for value in node.args.kw_defaults]
        self.places.pop()
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        """Only the value, not the type."""
        if node.value is not None:
            node.value = self.visit(node.value)
        return node

    def chosen(self, node: ast.AST) -> ast.AST | None:
        """What the node is changed to, if the change with the number is here."""
        if not self.places and isinstance(getattr(node, "op", None), ast.BitOr):
            return None  # a type
        for change in changes_of(node):
            line = getattr(node, "lineno", 0)
            place = ".".join(self.places) or "-"
            words = f"{_text(node)} -> {_text(change)}"
            if isinstance(node, ast.Constant | ast.Name) and self.around is not None:
                words += f" in {_text(self.around)}"
            self.found.append(Mutant(self.module, line, place, words, len(self.found)))
            if self.number == len(self.found) - 1:
                return ast.fix_missing_locations(ast.copy_location(change, node))
        return None


def changes_of(node: ast.AST) -> Iterator[ast.AST]:
    """What a node may be changed to."""
    match node:
        case ast.Compare():
            for at, operator in enumerate(node.ops):
                for other in COMPARED[type(operator)]:
                    yield _with(node, ops=[*node.ops[:at], other(), *node.ops[at + 1 :]])
        case ast.BoolOp():
            yield _with(node, op=ast.Or() if isinstance(node.op, ast.And) else ast.And())
            for at in range(len(node.values)):
                rest = [*node.values[:at], *node.values[at + 1 :]]
                yield rest[0] if len(rest) == 1 else _with(node, values=rest)
        case ast.BinOp() if type(node.op) in COMPUTED:
            if not any(map(_is_text, (node.left, node.right))):
                yield _with(node, op=COMPUTED[type(node.op)]())
            if isinstance(node.op, ast.BitAnd | ast.BitOr):
                yield from (node.left, node.right)
        case ast.UnaryOp(op=ast.Not() | ast.Invert() | ast.USub()):
            yield node.operand
        case ast.If() | ast.While() | ast.IfExp() if not isinstance(node.test, ast.Compare):
            yield _with(node, test=ast.UnaryOp(ast.Not(), node.test))
        case ast.Constant(value=bool(value)):
            yield ast.Constant(not value)
        case ast.Constant(value=int(value)):
            yield from (ast.Constant(value + 1), ast.Constant(value - 1))
        case ast.Constant(value=float(value)):
            yield ast.Constant(value * 2.0 if value else 1.0)
        case ast.Name() | ast.Attribute():
            field = "id" if isinstance(node, ast.Name) else "attr"
            if getattr(node, field) in NAMES and isinstance(node.ctx, ast.Load):
                yield _with(node, **{field: NAMES[getattr(node, field)]})
        case ast.Raise(exc=ast.Call(func=ast.Name(id="AssertionError"))):
            return  # what cannot happen
        case ast.Raise() | ast.AugAssign() | ast.Continue() | ast.Break():
            yield ast.Pass()
        case ast.Expr(value=ast.Call()):
            yield ast.Pass()


def _with(node: Any, **fields: Any) -> Any:
    changed = copy.copy(node)
    for name, value in fields.items():
        setattr(changed, name, value)
    return changed


def _is_text(node: ast.AST) -> bool:
    value = node.value if isinstance(node, ast.Constant) else ""
    return isinstance(node, ast.Constant | ast.JoinedStr) and isinstance(value, str)


def _text(node: ast.AST) -> str:
    """The first line of the code, which is enough to find it."""
    line = ast.unparse(node).splitlines()[0]
    return line if len(line) <= 120 else line[:117] + "..."


def mutants_of(package: str) -> list[Mutant]:
    """All mutants of a package."""
    found: list[Mutant] = []
    for path in sorted((SOURCE / package).glob("*.py")):
        mutator = Mutator(path.relative_to(SOURCE).as_posix())
        mutator.visit(ast.parse(path.read_text("utf-8")))
        found += mutator.found
    return found


class Changed(importlib.abc.MetaPathFinder):
    """Imports one module with its change."""

    def __init__(self, mutant: Mutant) -> None:
        self.mutant = mutant
        self.name = "fedaccord." + mutant.module.removesuffix(".py").replace("/", ".")

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> Any:
        """The module from its file, but compiled from the changed tree."""
        if fullname != self.name:
            return None
        file = str(SOURCE / self.mutant.module)
        loader = importlib.machinery.SourceFileLoader(fullname, file)
        mutator = Mutator(self.mutant.module, self.mutant.number)
        tree = mutator.visit(ast.parse(Path(file).read_text("utf-8")))
        loader.get_code = lambda _: compile(tree, file, "exec")  # type: ignore[method-assign, assignment]
        return importlib.util.spec_from_file_location(fullname, file, loader=loader)


class Traced:
    """A plugin of pytest that notes which lines each test executes, and how long it takes."""

    def __init__(self, package: str) -> None:
        self.coverage = coverage.Coverage(None, config_file=False, source=[str(SOURCE / package)])
        self.seconds: dict[str, float] = {}
        self.failed: list[str] = []
        self.coverage.start()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Notes a test that fails."""
        if report.failed:
            self.failed.append(f"{report.nodeid}\n{report.longreprtext[-2000:]}")

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Notes the lines of one test and its fixtures."""
        start = time.process_time()
        self.coverage.switch_context(item.nodeid)
        try:
            return (yield)
        finally:
            self.coverage.switch_context("")
            self.seconds[item.nodeid] = time.process_time() - start

    def lines(self) -> dict[str, dict[int, list[str]]]:
        """For each file, the tests that execute each line."""
        self.coverage.stop()
        data = self.coverage.get_data()
        return {file: data.contexts_by_lineno(file) for file in data.measured_files()}


def run_tests(tests: list[str], *plugins: Any) -> int:
    """Runs tests quietly; the exit code of pytest."""
    quiet = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(quiet, stream)
    with tempfile.TemporaryDirectory() as directory:
        options = [
            "-x",
            "-m",
            "not slow",
            "-p",
            "no:cacheprovider",
            f"--basetemp={directory}/tests",
        ]
        return int(pytest.main([*options, *tests], plugins=list(plugins)))


def forked(work: Callable[[], int], limit: float | None = None) -> int | None:
    """Does the work in a process of its own; its exit code, or None if that was ended."""
    child = os.fork()
    if not child:
        code = 70  # EX_SOFTWARE, of a fault in this file
        try:
            os.setsid()
            if limit is not None:
                resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
                resource.setrlimit(resource.RLIMIT_CPU, (int(limit) + 1, int(limit) + 2))
                signal.alarm(int(limit * 4) + 1)  # for one that waits
            code = work()
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    try:
        _, status = os.waitpid(child, 0)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)  # with what its tests started
    return os.WEXITSTATUS(status) if os.WIFEXITED(status) else None


def survives(mutant: Mutant, tests: list[str], seconds: float) -> bool:
    """Whether no test fails."""

    def work() -> int:
        sys.meta_path.insert(0, Changed(mutant))
        return run_tests(tests)

    return forked(work, seconds * SLOWER + SPARE) == 0


class QuickTests:
    """Which quick tests execute each line of a package, and what each of them takes."""

    def __init__(self, package: str) -> None:
        with tempfile.NamedTemporaryFile() as file:

            def work() -> int:
                traced = Traced(package)
                places = [f"tests/{name}" for name in TESTS[package]]
                code = run_tests([*places, f"src/fedaccord/{package}"], traced)
                found = (traced.lines(), traced.seconds, list(sys.modules), traced.failed)
                Path(file.name).write_bytes(pickle.dumps(found))
                return code

            code = forked(work)
            self.lines, self.seconds, imported, failed = pickle.loads(Path(file.name).read_bytes())
            if code != 0:
                sys.exit("\n".join([f"Mend first what fails without any change: {code}", *failed]))
        for name in imported:
            if name.split(".")[0] in LIBRARIES:
                importlib.import_module(name)

    def of(self, mutant: Mutant) -> Iterator[tuple[list[str], float]]:
        """The quickest of those that execute its line, or its module, and their time; then others.

        The others are those that execute the most of the module.
        """
        lines = self.lines.get(str(SOURCE / mutant.module), {})
        found = set(lines.get(mutant.line, [])) - {""}
        executed = Counter(test for tests in lines.values() for test in tests if test)
        if not found:  # executed at the import, or not at all
            found = set(executed)
        quickest = sorted(found, key=lambda test: (self.seconds[test], test))
        chosen, total = self._within(SECONDS, quickest)
        yield chosen, total
        most = sorted(found - set(chosen), key=lambda test: (-executed[test], test))
        if most:
            yield self._within(MORE_SECONDS, most)

    def _within(self, limit: float, tests: list[str]) -> tuple[list[str], float]:
        """The first tests that take so long altogether, at least one if there is one."""
        chosen, total = list[str](), 0.0
        for test in tests:
            if chosen and total + self.seconds[test] > limit:
                break
            total += self.seconds[test]
            chosen.append(test)
        return chosen, total


def score(package: str, modules: list[str], rng: random.Random, minutes: float) -> float:
    """Tries mutants of a package in random order for some minutes; the share that is noticed."""
    made, lines = mutants_of(package), EQUIVALENT.read_text("utf-8").splitlines()
    reviewed = {line for line in lines if line.startswith(f"{package}/")}
    for line in sorted(reviewed - {mutant.name for mutant in made}):
        print(f"{EQUIVALENT.relative_to(ROOT)}: there is no such mutant any more: {line}")
    mutants = [m for m in made if m.name not in reviewed and m.module.startswith(tuple(modules))]
    rng.shuffle(mutants)
    tests, noticed, survivors = QuickTests(package), 0, 0
    for mutant in mutants[:1]:
        unchanged = mutant._replace(number=-1)
        if not all(survives(unchanged, *some) for some in tests.of(mutant)):
            sys.exit("Tests fail without any change when they run like this: mend that first.")
    start = time.monotonic()
    for mutant in mutants:
        if time.monotonic() - start > 60 * minutes:
            break
        executed = any(chosen for chosen, _ in tests.of(mutant))
        if executed and not all(survives(mutant, *some) for some in tests.of(mutant)):
            noticed += 1
            continue
        survivors += 1
        what = "survived" if executed else "is executed by no quick test"
        print(f"src/fedaccord/{mutant.module}:{mutant.line} {what}: {mutant.name}", flush=True)
    tried = noticed + survivors
    share = noticed / tried if tried else 1.0
    print(
        f"{package}: {noticed} of {tried} noticed, {share:.1%} ({len(mutants)} mutants)", flush=True
    )
    return share


def main() -> None:
    """Prints the survivors and the score of each package; exits with 1 if one is below the bar."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("modules", nargs="*", default=[*TESTS], help="agreement, or game/law.py")
    parser.add_argument(
        "--minutes", type=float, default=5.0, help="for each package, once its tests are known"
    )
    parser.add_argument("--seed", type=int, default=0, help="which mutants come first")
    options = parser.parse_args()
    for module in options.modules:
        if module.split("/")[0] not in TESTS or not (SOURCE / module).exists():
            parser.error(f"{module}: must be one of {', '.join(TESTS)}, or a module of one")
    os.chdir(ROOT)
    rng, scores = random.Random(options.seed), []
    for package in sorted({module.split("/")[0] for module in options.modules}):
        mine = [m if "/" in m else m + "/" for m in options.modules if m.split("/")[0] == package]
        scores.append(score(package, mine, rng, options.minutes))
    sys.exit(min(scores) < BAR)


if __name__ == "__main__":
    main()
