"""Several threads: the same numbers, and nothing left behind."""

import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from fedaccord.training.engine import LocalEpochs, TrainingFailed
from fedaccord.training.threads import ThreadPool, one_thread
from fedaccord.training.vectorised.engine import VectorisedEngine
from tests.training.engine_contract import LOCALS, RAGGED, final, noise, plan


@pytest.fixture
def three_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("task", ["softmax", "mlp", "cnn"])
@pytest.mark.parametrize("local", LOCALS)
@pytest.mark.parametrize("sizes", [RAGGED, [30] * 13])
@pytest.mark.usefixtures("three_threads")
def test_the_same_numbers_to_the_last_bit(sizes: Any, local: Any, task: str) -> None:
    given = plan(sizes, local, task, rounds=2)
    three = final(VectorisedEngine(), given)
    with one_thread():
        one = final(VectorisedEngine(), given)
    assert all(torch.equal(one[name], three[name]) for name in one)


class _Split(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Notes the operations on this thread that PyTorch may split between threads."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.found: set[str] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if torch.get_num_threads() > 1 and not func.is_view:
            self.found.add(str(func))
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("local", LOCALS)
@pytest.mark.usefixtures("three_threads")
def test_no_threads_of_pytorch_wait_for_more_while_the_pool_works(local: Any) -> None:
    given = plan([130, 0, 70], local, "mlp", dataset=noise(200), rounds=2)
    start = given.model.start(seed=3)
    with _Split() as split:
        rounds = list(VectorisedEngine().rounds(given, start))
    assert len(rounds) == 2
    assert split.found <= {"aten.detach.default"}


@pytest.mark.usefixtures("three_threads")
def test_results_come_in_order_and_each_thread_has_its_own_worker() -> None:
    made: list[int] = []

    def make_worker() -> Callable[[int], tuple[int, int, int]]:
        made.append(threading.get_ident())
        return lambda piece: (piece, made.index(threading.get_ident()), torch.get_num_threads())

    with closing(ThreadPool()) as pool, pool.in_order(make_worker, range(50)) as results:
        assert torch.get_num_threads() == 1
        found = list(results)
    assert [piece for piece, _, _ in found] == list(range(50))
    assert {threads for _, _, threads in found} == {1}
    assert threading.get_ident() not in made
    assert len(made) == len(set(made)) <= 3
    assert torch.get_num_threads() == 3


@pytest.mark.usefixtures("three_threads")
def test_a_failure_on_another_thread_names_the_client_and_ends_the_threads() -> None:
    before = threading.active_count()
    with pytest.raises(TrainingFailed, match=r"the model of clients\[\d\] became NaN"):
        final(VectorisedEngine(), plan(RAGGED, LocalEpochs(1e30, 16), "mlp", rounds=5))
    assert torch.get_num_threads() == 3
    assert threading.active_count() == before


def test_a_single_thread_also_ends_after_an_error() -> None:
    before = torch.get_num_threads()
    with pytest.raises(ZeroDivisionError), one_thread():
        raise ZeroDivisionError
    assert torch.get_num_threads() == before
