"""A section of the report: what was asked, what was found, tables and figures."""

from __future__ import annotations

from dataclasses import dataclass

from incdsi_lab.report.figures import Figure
from incdsi_lab.report.tables import Table


@dataclass(frozen=True, slots=True, kw_only=True)
class Aim:
    """Something the study was to reach, what was found, and whether that reaches it."""

    text: str
    found: str
    reached: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """One experiment's part of the report; `paragraphs` are made from the figures, never written beforehand."""

    name: str
    title: str
    paragraphs: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()
    figures: tuple[Figure, ...] = ()
    aims: tuple[Aim, ...] = ()
    against: tuple[str, ...] = ()
