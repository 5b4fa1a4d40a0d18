"""Work on as many threads as PyTorch may use, each piece of it on one.

PyTorch's own threads share out every single operation and wait for one another after each. For
operations as small as those of a mini-batch the waiting costs more than the sharing saves, and on
a busy machine many times more. Here each thread takes a piece of work of its own and waits for
nobody. What the pieces are does not depend on the number of threads, and neither do the numbers.
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
    """Let PyTorch's operations run on the caller's thread alone, for a while."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


class Crew:
    """Threads that stay: the first operations of a new one cost it milliseconds.

    >>> from contextlib import closing
    >>> with closing(Crew()) as crew, crew.in_order(lambda: lambda n: n**2, [1, 2, 3]) as squares:
    ...     sum(squares)
    14
    """

    def __init__(self) -> None:
        """As many as PyTorch may use now; none if that is one."""
        threads = torch.get_num_threads()
        self._pool = ThreadPoolExecutor(threads, initializer=_work_alone) if threads > 1 else None

    def close(self) -> None:
        """End the threads, after what they have begun."""
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)

    @contextmanager
    def in_order(
        self, make_worker: Callable[[], Callable[[Piece], Result]], pieces: Iterable[Piece]
    ) -> Iterator[Iterator[Result]]:
        """What a worker makes of each piece, in the order of the pieces.

        Every thread makes a worker for itself, which may hold what threads can't share. Inside,
        the caller's own operations run on its thread alone, too.
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
    """Let this thread do all by itself; asking first, as PyTorch sets the number when asked."""
    torch.get_num_threads()
    torch.set_num_threads(1)
