"""Lets atheris (libFuzzer) look for bytes that make a decoder fail, guided by the code that runs.

`python -m tests.fuzz.guided -max_total_time=60` does it for a minute.
"""

import sys

import atheris

with atheris.instrument_imports(include=["fedaccord"]):
    from tests.fuzz.decoders import decode

if __name__ == "__main__":
    atheris.Setup(sys.argv, decode)
    atheris.Fuzz()
