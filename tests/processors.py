"""The processors this one can pretend to be, and the suites whose outcome must not depend on which.

`python -m tests.processors` runs the solver's, the rows' and the index's suites under each kernel of OpenBLAS that this
machine can run, and among them with every screen and number of threads. `--all` runs each kernel with each screen.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

SUITES = ("tests/solver", "tests/rows", "tests/test_search.py", "tests/index")
# Files, processes and torch: nothing there that a kernel could change.
LEFT_OUT = ("tests/index/test_index_models.py", "tests/index/test_index_crash.py", "tests/index/test_index_build.py")
SCREENS = ("Int8", "Int8ByBlas", "Float32", "Coarse")


@dataclass(frozen=True, kw_only=True)
class Processor:
    """A kernel of OpenBLAS and the parts of numpy's own arithmetic it goes with, on so many threads."""

    kernel: str
    threads: int = 2
    screen: str = "Int8"

    @property
    def environment(self) -> dict[str, str]:
        """This process's variables, with those that make a child such a processor."""
        without = "X86_V3 X86_V4 AVX512_ICL AVX512_SPR" if self.kernel == "Prescott" else ""
        return {
            **os.environ,
            "OPENBLAS_CORETYPE": self.kernel,
            "OPENBLAS_NUM_THREADS": str(self.threads),
            "NPY_DISABLE_CPU_FEATURES": without,
            "INCDSI_TEST_SCREEN": self.screen,
        }

    def __str__(self) -> str:
        return f"{self.kernel}, {self.screen}, {self.threads} thread(s)"


def kernels() -> list[str]:
    """Those this machine can run, the plainest first."""
    flags = Path("/proc/cpuinfo").read_text().split() if Path("/proc/cpuinfo").exists() else []
    return [
        "Prescott",
        *(["Haswell", "Zen"] if "avx2" in flags else []),
        *(["SkylakeX"] if "avx512f" in flags else []),
    ]


def some() -> list[Processor]:
    """Each kernel once, and among them each screen."""
    ways = ((1, "Coarse"), (2, "Int8ByBlas"), (2, "Float32"), (1, "Int8"))
    return [
        Processor(kernel=kernel, threads=threads, screen=screen)
        for kernel, (threads, screen) in zip(kernels(), ways, strict=False)
    ]


def every() -> list[Processor]:
    """Each kernel with each screen, on one thread and on two in turn."""
    return [
        Processor(kernel=kernel, threads=1 + (number + place) % 2, screen=screen)
        for number, kernel in enumerate(kernels())
        for place, screen in enumerate(SCREENS)
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--all", action="store_true", help="each kernel with each screen")
    failed = []
    for processor in every() if parser.parse_args(arguments).all else some():
        print(f"\n{processor}", flush=True)
        left_out = [f"--ignore={path}" for path in LEFT_OUT]
        # Another engine's documents lie elsewhere; what is calculated with them is the same code.
        chosen = ["-m", "not slow and not milvus", "-k", "not lite"]
        command = [sys.executable, "-m", "pytest", "-q", *chosen, "-n", "auto", *left_out, *SUITES]
        if subprocess.run(command, env=processor.environment, check=False).returncode:
            failed.append(str(processor))
    print("\n".join(["failed under:", *failed]) if failed else "\nthe same under every processor tried")
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
