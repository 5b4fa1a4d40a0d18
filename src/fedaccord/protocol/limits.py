"""The largest numbers that terms and messages may have: whatever follows from them is finite."""

from typing import Annotated

from pydantic import Field

MOST = 10**9
"""The largest count of anything: no computer could work with far larger ones."""
MOST_CLIENTS = 9_000
MOST_SAMPLES = 10**12
"""Of one client, so that a float holds the total of all clients exactly (it is below 2^53)."""
MOST_STEPS = 10_000
"""Of a clock: as many questions must be asked in every slot."""
RATIOS = (1e-100, 1e100)
"""The range of a client's ratio: whatever is computed from such ratios is finite."""
Count = Annotated[int, Field(ge=1, le=MOST)]
