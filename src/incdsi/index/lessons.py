"""Clicks, compared with what an index knows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from incdsi.clicks import Click, Lesson, Outcome, Threshold, judged
from incdsi.documents import fold
from incdsi.engine.protocol import Engine


def lessons_of(engine: Engine, clicks: Iterable[Click], threshold: Threshold) -> list[Lesson]:
    """What there is to learn; reads every document once if there is anything."""
    lessons = judged(clicks, engine.__contains__, threshold)
    wanted = {fold(lesson.query) for lesson in lessons if lesson.outcome is Outcome.LEARNED}
    asked, taught = _who_has(engine, wanted)
    return [_compared(lesson, asked, taught) for lesson in lessons]


def queries_to_attach(lessons: Iterable[Lesson]) -> dict[str, list[str]]:
    """The queries that are learned, by document."""
    found: dict[str, list[str]] = {}
    for lesson in lessons:
        if lesson.outcome is Outcome.LEARNED:
            found.setdefault(lesson.document_id, []).append(lesson.query)
    return found


Owners = dict[str, set[str]]


def _who_has(engine: Engine, wanted: set[str]) -> tuple[Owners, Owners]:
    """The documents for which each of these queries was asked or taught, and those for which it was taught."""
    asked: Owners = {}
    taught: Owners = {}
    for record in engine.records() if wanted else ():
        for query in record.queries:
            key = fold(query.text)
            if key in wanted and not query.generated:
                asked.setdefault(key, set()).add(record.document.id)
                if query.taught:
                    taught.setdefault(key, set()).add(record.document.id)
    return asked, taught


def _compared(lesson: Lesson, asked: Owners, taught: Owners) -> Lesson:
    """A person who taught knows better than clicks; what the document has already is not learned again."""
    if lesson.outcome is not Outcome.LEARNED:
        return lesson
    key, id = fold(lesson.query), lesson.document_id
    if id in asked.get(key, ()):
        return replace(lesson, outcome=Outcome.KNOWN)
    return replace(lesson, outcome=Outcome.TAUGHT_OTHERWISE) if taught.get(key) else lesson
