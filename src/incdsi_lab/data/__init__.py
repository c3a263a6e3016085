"""Readers of the field's collections; every refusal names file and line."""

from incdsi_lab.data.beir import read_beir
from incdsi_lab.data.irds import read_irds
from incdsi_lab.data.jsonl import read_jsonl, write_jsonl
from incdsi_lab.data.msmarco import read_msmarco
from incdsi_lab.data.natural_questions import read_natural_questions
from incdsi_lab.data.released import Released, read_released

__all__ = [
    "Released",
    "read_beir",
    "read_irds",
    "read_jsonl",
    "read_msmarco",
    "read_natural_questions",
    "read_released",
    "write_jsonl",
]
