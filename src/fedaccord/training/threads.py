"""A thread pool in which each piece of work runs on one thread.

PyTorch's own threads split every single operation and wait for one another after each. For
operations as small as those of a mini-batch the waiting costs more than the splitting saves, and
on a busy machine many times more. Here each thread takes whole pieces of work and never waits. The
pieces do not depend on the number of threads, and neither do the results.

A single operation on PyTorch's own threads is enough to slow these down: its threads go on waiting
in a loop for some milliseconds after it, on the processors that the pool's threads need.
"""

import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

import torch

Piece = TypeVar("Piece")
Result = TypeVar("Result")


@contextmanager
def one_thread() -> Iterator[None]:
    """Run PyTorch's operations on the caller's thread alone."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


class ThreadPool:
    """Threads that are kept: the first operations of a new one take milliseconds.

    >>> from contextlib import closing
    >>> with closing(ThreadPool()) as pool:
    ...     with pool.in_order(lambda: lambda n: n**2, [1, 2, 3]) as squares:
    ...         sum(squares)
    14
    """

    def __init__(self) -> None:
        """As many threads as PyTorch may use now; the caller's own if that is one."""
        threads = torch.get_num_threads()
        self._pool = ThreadPoolExecutor(threads, initializer=_work_alone) if threads > 1 else None

    def close(self) -> None:
        """End the threads once they have finished what they are doing."""
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)

    @contextmanager
    def in_order(
        self, make_worker: Callable[[], Callable[[Piece], Result]], pieces: Iterable[Piece]
    ) -> Iterator[Iterator[Result]]:
        """The result for each piece, in the order of the pieces.

        Every thread makes a worker of its own, which may hold what threads cannot share. Inside
        the context the caller's own operations also run on its thread alone.
        """
        own = threading.local()

        def work(piece: Piece) -> Result:
            if not hasattr(own, "worker"):
                own.worker = make_worker()
            result: Result = own.worker(piece)
            return result

        with one_thread():
            yield map(work, pieces) if self._pool is None else self._pool.map(work, pieces)


def _work_alone() -> None:
    """Keep PyTorch to this thread. Ask first: PyTorch sets the number when it is first asked."""
    torch.get_num_threads()
    torch.set_num_threads(1)
