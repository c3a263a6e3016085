"""Documents and encoder of one moment: what a search uses from its beginning to its end."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from incdsi.documents import Hit
from incdsi.engine.protocol import Doubles, Engine, Floats, Rows, Scored, View, Worded
from incdsi.engine.settings import Settings
from incdsi.errors import InvalidInput, UnknownDocument
from incdsi.filters import Filter, Where, parse
from incdsi.index.draft import require_query
from incdsi.index.snippets import Excerpts
from incdsi.progress import Stopwatch
from incdsi.records import Passaged
from incdsi.search import Fused, Mode, check_k, check_mode, evidence, fused
from incdsi.text.encoders import Encoder, encode_each

T = TypeVar("T")


@dataclass(frozen=True, slots=True, eq=False)
class _Ranking:
    """What a search ranks by, what each part that has a say contributes to the documents asked, and to passages."""

    scored: Scored | Fused
    parts: Mapping[str, Callable[[Rows], Doubles]]
    within: Callable[[int, int], Doubles]  # how well each of a document's so many passages matches


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Snapshot:
    """A view, and the encoder that its vectors are by."""

    engine: Engine
    view: View
    encoder: Encoder

    @property
    def settings(self) -> Settings:
        return self.view.settings

    def search(
        self,
        texts: Sequence[str],
        k: int,
        where: Where | None,
        mode: str,
        least: float | None,
        passages: int,
        watch: Stopwatch,
        most_bytes: int | None,
    ) -> Iterator[list[Hit]]:
        """The k best documents for each text that are right with the `least` confidence asked for.

        One after another, each as if it came alone. TooLarge when all of them together have more than `most_bytes`.
        """
        for text in texts:
            require_query(text)
        check_k(k)
        check_k(passages, "passages")
        if least is not None:
            self._require_confidence(least, mode)
        # Half a surrogate pair is no reason to find nothing.
        readable = [text.encode("utf-8", "replace").decode() for text in texts]
        rankings = self._rankings(readable, None if where is None else parse(where), check_mode(mode), watch)
        return self._found(zip(readable, rankings, strict=True), k, least, passages, watch, most_bytes)

    def _found(
        self,
        rankings: Iterable[tuple[str, _Ranking]],
        k: int,
        least: float | None,
        passages: int,
        watch: Stopwatch,
        most_bytes: int | None,
    ) -> Iterator[list[Hit]]:
        for text, ranking in rankings:
            excerpts = Excerpts(self.view.marker(text), ranking.within, passages)
            hits = self._hits(ranking, excerpts, k, least, watch, most_bytes)
            if most_bytes is not None:
                most_bytes -= sum(len(hit.document.text.encode("utf-8", "replace")) for hit in hits)
            yield hits

    def _hits(
        self,
        ranking: _Ranking,
        excerpts: Excerpts,
        k: int,
        least: float | None,
        watch: Stopwatch,
        most_bytes: int | None,
    ) -> list[Hit]:
        rows, scores, found = self._best(ranking, k, watch, most_bytes)
        parts = {name: contribution(rows) for name, contribution in ranking.parts.items()}
        if self.settings.confidence is not None and isinstance(ranking.scored, Fused):
            seen = evidence(ranking.scored, rows, scores, self.view.asked_for(rows))
            parts["confidence"] = self.settings.confidence.of(seen)
        with watch.step("snippets"):
            extracts = [excerpts.of(row, *one) for row, one in zip(rows.tolist(), found, strict=True)]
        hits = [
            Hit(
                document_id=one.document.id,
                score=float(scores[place]),
                rank=place + 1,
                document=one.document,
                passages=best,
                snippet=snippet,
                **{name: float(values[place]) for name, values in parts.items()},
            )
            for place, (one, (best, snippet)) in enumerate(zip(found, extracts, strict=True))
        ]
        return hits if least is None else [hit for hit in hits if (hit.confidence or 0.0) >= least]

    def _require_confidence(self, least: float, mode: str) -> None:
        if isinstance(least, bool) or not isinstance(least, int | float) or not 0.0 <= least <= 1.0:
            raise InvalidInput(f"the least confidence must be a number between 0 and 1, not {least!r}")
        if mode != "fused":
            raise InvalidInput(f"only fused search knows how confident it is, not mode {mode!r}")
        if self.settings.confidence is None:
            raise InvalidInput(
                "this index cannot tell how confident it is yet: too few questions are held out to learn it from; "
                "add documents with three or more questions each, or search without a least confidence"
            )

    def _best(
        self, ranking: _Ranking, k: int, watch: Stopwatch, most_bytes: int | None
    ) -> tuple[Rows, Doubles, list[Passaged]]:
        """The k best documents; where one was deleted after it was ranked, others move up."""
        gone = 0
        while True:
            with watch.step("rank"):
                found = ranking.scored.top(k + gone)
            with watch.step("read"):
                documents = _documents(self.engine, found.rows.tolist(), most_bytes)
            there = [place for place, document in enumerate(documents) if document is not None][:k]
            if len(there) == k or len(documents) < k + gone:
                return found.rows[there], found.scores[there], [one for one in documents if one is not None][:k]
            gone = len(documents) - len(there)

    def _rankings(self, texts: Sequence[str], where: Filter | None, mode: Mode, watch: Stopwatch) -> Iterator[_Ranking]:
        """By words alone, documents that share none with the text are not found."""
        fusion = self.settings.fusion
        if mode == "lexical" or (mode == "fused" and fusion.lexical_weight >= 1.0):
            for lexical in self._lexical(texts, where, watch):
                if mode == "lexical":
                    yield _Ranking(lexical, {"lexical": lexical.score}, _each(lexical))
                else:
                    yield _by_parts(fused(lexical, lexical, lexical, fusion))  # the other parts have no say
            return
        with watch.step("encode"):
            embeddings = encode_each(self.encoder, texts)
        scored = _stepped(self.view.learned_many(embeddings, where), watch, "learned")
        if mode == "learned":
            for embedding, learned in zip(embeddings, scored, strict=True):
                yield _Ranking(learned, {"learned": learned.score}, _by_meaning(self.view, embedding))
            return
        texts_scored = _stepped(self.view.nearest_many(embeddings, where), watch, "nearest")
        for learned, nearest, lexical in zip(scored, texts_scored, self._lexical(texts, where, watch), strict=True):
            yield _by_parts(fused(learned, nearest, lexical, fusion))

    def _lexical(self, texts: Sequence[str], where: Filter | None, watch: Stopwatch) -> Iterator[Worded]:
        return _stepped((self.view.lexical(text, where) for text in texts), watch, "lexical")


def _stepped(found: Iterator[T], watch: Stopwatch, step: str) -> Iterator[T]:
    """The same, telling the watch how long each takes."""
    nothing = object()
    while True:
        with watch.step(step):
            one = next(found, nothing)
        if one is nothing:
            return
        yield one  # type: ignore[misc]


def _by_meaning(view: View, embedding: Floats) -> Callable[[int, int], Doubles]:
    """Passages by their embeddings."""
    return lambda row, count: view.within(embedding, row)[:count]


def _by_parts(whole: Fused) -> _Ranking:
    shares = (part.of_rows for part in whole.parts)
    telling = [part for part in whole.parts[1:] if part.weight > 0] or whole.parts[1:2]

    def within(row: int, count: int) -> Doubles:
        return np.asarray(np.sum([part.values(part.scored.within(row)[:count]) for part in telling], axis=0))

    return _Ranking(whole, dict(zip(("learned", "nearest", "lexical"), shares, strict=True)), within)


def _each(scored: Scored) -> Callable[[int, int], Doubles]:
    return lambda row, count: scored.within(row)[:count]


def _documents(engine: Engine, rows: Sequence[int], most_bytes: int | None) -> Sequence[Passaged | None]:
    """The documents in these rows; None for one that is gone."""
    try:
        return engine.passaged(rows, most_bytes)
    except UnknownDocument:
        if len(rows) == 1:
            return [None]
        return [document for row in rows for document in _documents(engine, [row], most_bytes)]
