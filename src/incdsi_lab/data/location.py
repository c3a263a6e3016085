"""Where collections are when no folder is named."""

from __future__ import annotations

import os
from pathlib import Path

ENVIRONMENT = "INCDSI_DATA"
BESIDE = Path("../shared/data")


def data_home() -> Path:
    """The folder that INCDSI_DATA names, else ../shared/data."""
    return Path(os.environ.get(ENVIRONMENT) or BESIDE)
