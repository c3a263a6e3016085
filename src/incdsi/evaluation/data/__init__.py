"""Readers of the collections of the field; each refusal names file and line."""

from incdsi.evaluation.data.jsonl import read_jsonl

__all__ = ["read_jsonl"]
