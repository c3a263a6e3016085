"""The engine of one machine: a store in a folder, and what is live of it in memory."""

from incdsi.engine.local.engine import LocalEngine
from incdsi.engine.local.live import Live

__all__ = ["Live", "LocalEngine"]
