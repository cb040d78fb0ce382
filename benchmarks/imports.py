"""What `from jobset_steps import JobSet` costs beside a bare `import pydantic`: time and peak memory, as ratios of medians.

    python benchmarks/imports.py

Pairs of fresh processes, in turn, so that a machine that grows slower slows both. The last line is the figure: at most 2.0.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time

PAIRS = 15
OURS, BARE = "from jobset_steps import JobSet", "import pydantic; pydantic.BaseModel"


def cost(code: str) -> tuple[float, float]:
    """Seconds and peak MiB of a fresh interpreter that runs this."""
    began = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-c", code])
    _, status, usage = os.wait4(process.pid, 0)
    assert status == 0, code
    return time.perf_counter() - began, usage.ru_maxrss / 1024


def main() -> None:
    pairs = [(cost(OURS), cost(BARE)) for _ in range(PAIRS + 1)][1:]
    for name, place in (("seconds", 0), ("MiB", 1)):
        ours, bare = (statistics.median(pair[side][place] for pair in pairs) for side in (0, 1))
        print(f"{name}: jobset_steps {ours:.3f}, pydantic {bare:.3f}")
    seconds, memory = (
        statistics.median(ours[place] / bare[place] for ours, bare in pairs) for place in (0, 1)
    )
    print(f"import {seconds:.2f}, memory {memory:.2f}")


if __name__ == "__main__":
    main()
