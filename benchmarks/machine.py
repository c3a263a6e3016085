"""What a figure was measured on, and where results go."""

from __future__ import annotations

import json
import os
import platform
import resource
import sys
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"
SHARED_DATA = Path(__file__).parent.parent.parent / "shared" / "data"


def machine() -> dict[str, Any]:
    """Processor, cores, memory, and the versions of what the figures depend on."""
    packages = ("numpy", "torch", "onnxruntime", "sentence-transformers", "apsw")
    return {
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "python": platform.python_version(),
        **{name: _version(name) for name in packages},
    }


def resident_mb() -> float:
    """Memory this process holds now, in MB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def peak_mb() -> float:
    """The most memory this process ever held, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6


def write(name: str, results: dict[str, Any]) -> Path:
    """Store results with the machine and the command that made them."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.json"
    module = sys.modules["__main__"].__spec__
    command = " ".join(["python -m", module.name if module else name, *sys.argv[1:]])
    when = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    path.write_text(json.dumps({"command": command, "when": when, "machine": machine(), **results}, indent=1) + "\n")
    return path


def _cpu() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    flags = next((line for line in lines if line.startswith("flags")), "")
    units = [unit for unit in ("avx2", "avx512f", "amx_bf16") if f" {unit}" in flags]
    return " ".join([names[0] if names else platform.processor(), *units])


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "not installed"
