"""What a figure was measured on."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

PACKAGES = ("numpy", "torch", "onnxruntime", "sentence-transformers", "apsw")


def machine(packages: Sequence[str] = PACKAGES) -> dict[str, Any]:
    """Processor, cores, memory, and the versions of what the figures depend on."""
    return {
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "python": platform.python_version(),
        **{name: _version(name) for name in packages},
    }


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
