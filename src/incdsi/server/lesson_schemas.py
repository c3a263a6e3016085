"""What goes over the wire about clicks and gaps, in both directions."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from incdsi.clicks import LEAST_CLICKS, LEAST_SHARE, Outcome
from incdsi.gaps import Gap
from incdsi.server.schemas import Answer, Asked, Id

MOST_CLICKS = 10_000  # in one request


class ClickIn(Asked):
    """A document that was clicked for a query, `count` times."""

    query: Annotated[str, Field(min_length=1, pattern=r"\S", examples=["dry feet in a river"])]
    id: Id
    count: Annotated[int, Field(ge=1)] = 1


class LearnRequest(Asked):
    """Clicks to learn from, or without any the server's own log; what a query needs to be learned."""

    clicks: list[ClickIn] | None = None
    least: Annotated[int, Field(ge=1)] = LEAST_CLICKS
    share: Annotated[float, Field(gt=0.0, le=1.0)] = LEAST_SHARE
    dry_run: bool = False


class Clicked(Answer):
    """A click that is in the log."""

    kept: bool
    version: int


class LessonOut(Answer):
    """`clicks` of the `asked` clicks for a query went to this document."""

    query: str
    id: str
    clicks: int
    asked: int
    outcome: Outcome


class LearnedOut(Answer):
    """What became of each query and document that was clicked."""

    counts: dict[str, int]
    lessons: list[LessonOut]
    dry_run: bool
    version: int


class GapsOut(Answer):
    """What people ask and the index answers badly, among so many different queries; the most asked first."""

    gaps: tuple[Gap, ...]
    queries: int
    judged_by: Literal["confidence", "words"]
    version: int
