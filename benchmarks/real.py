"""Real documents with real questions, embedded once and kept in the user's cache between benchmarks."""

from __future__ import annotations

from incdsi.text.encoders import load_encoder
from incdsi_lab.baselines.protocol import Questions
from incdsi_lab.data import read_jsonl
from incdsi_lab.data.location import data_home
from incdsi_lab.embedded import SPANS, embed
from incdsi_lab.embedded import Embedded as RealData

__all__ = ["SPANS", "Questions", "RealData", "real_data"]


def real_data(name: str = "squad_plus") -> RealData:
    """The set of that name, or in the folder of that path; InvalidFile if it is missing."""
    return embed(read_jsonl(data_home() / name, name), load_encoder())
