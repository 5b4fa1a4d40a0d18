"""What stands for `fedaccord server` in tests of the room: it does what files beside it say.

It prints the lines that are in the file `says` of the server's directory, as they are added, starts
a process of its own, and ends with the code in the file `ends`.
"""

import signal
import subprocess
import sys
import time
from pathlib import Path
from types import FrameType

CHILD = "import time; time.sleep(600)  # a child of the pretended server"


def _main(words: list[str]) -> None:
    job, folder = words[2], Path(words[3])
    child = subprocess.Popen([sys.executable, "-c", CHILD], start_new_session=True)

    def end(number: int, frame: FrameType | None) -> None:
        child.terminate()
        child.wait()
        sys.exit(0)

    signal.signal(signal.SIGTERM, end)
    (folder / f"{job}.child").write_text(str(child.pid))
    said = 0
    while True:
        lines = _lines(folder / f"{job}.says")
        for line in lines[said:]:
            print(line, flush=True)
        said = len(lines)
        if codes := _lines(folder / f"{job}.ends"):
            child.terminate()
            sys.exit(int(codes[0]))
        time.sleep(0.02)


def _lines(path: Path) -> list[str]:
    return path.read_text("utf-8").splitlines() if path.is_file() else []


if __name__ == "__main__":
    _main(sys.argv)
