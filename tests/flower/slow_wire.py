"""A wire that delays and loses packets, for kernels without `tc netem`: two TAP devices and a heap.

    python -m tests.flower.slow_wire DEVICE DEVICE SECONDS LOSS

It makes the two devices, and passes every frame from one to the other after so many seconds, unless
it loses it. The devices can be moved into other network namespaces; they go away with the process.
"""

import fcntl
import heapq
import os
import random
import select
import struct
import sys
import time

_TUNSETIFF = 0x400454CA
_TAP_WITHOUT_HEADER = 0x0002 | 0x1000  # IFF_TAP | IFF_NO_PI


def tap(name: str) -> int:
    """A new TAP device: what is written to it arrives at the machine, and the other way round."""
    device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(device, _TUNSETIFF, struct.pack("16sH22x", name.encode(), _TAP_WITHOUT_HEADER))
    return device


def main(one: str, other: str, seconds: float, loss: float) -> None:
    """Pass on frames until the process is ended."""
    ends = [tap(one), tap(other)]
    chance = random.Random(0)
    under_way: list[tuple[float, int, int, bytes]] = []
    number = 0
    print("ready", flush=True)
    while True:
        wait = max(0.0, under_way[0][0] - time.monotonic()) if under_way else None
        readable, _, _ = select.select(ends, [], [], wait)
        for end in readable:
            frame = os.read(end, 65536)
            if chance.random() >= loss:
                number += 1
                there = ends[1 - ends.index(end)]
                heapq.heappush(under_way, (time.monotonic() + seconds, number, there, frame))
        while under_way and under_way[0][0] <= time.monotonic():
            _, _, there, frame = heapq.heappop(under_way)
            try:
                os.write(there, frame)
            except OSError:  # the device is down: the frame is lost
                continue


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], float(sys.argv[3]), float(sys.argv[4]))
