"""An index moved as it is stored, from a folder to Milvus or back: nothing is embedded or placed anew."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

import numpy as np

from incdsi.engine.copying import copy_records
from incdsi.engine.protocol import Doubles, Engine, View
from incdsi.errors import CorruptStore, IndexNotFound, InvalidInput, ModelNotFound
from incdsi.index.making import create_like, open_engine
from incdsi.index.remembered import GENERATOR, SPLITTER
from incdsi.index.tuning import TUNING_KEY
from incdsi.progress import Progress
from incdsi.records import Record
from incdsi.search import fused
from incdsi.text.encoders import Encoder

UNFINISHED = "migrating"  # a setting of an index that is on its way: where it comes from
COMPARED = 64  # documents whose texts are searched for on both sides
BEST = 10
CLOSE = 1e-6  # two sums over the same vectors in another order


@dataclass(frozen=True, slots=True, kw_only=True)
class Migration:
    """How many documents there are, how many of them were copied now, and how many searches gave the same."""

    documents: int
    copied: int
    searches: int


def migrate(
    source: Path | str,
    target: Path | str,
    *,
    encoder: Encoder | str | Path | None = None,
    progress: Progress | None = None,
) -> Migration:
    """Copy an index to a place that has none, and compare; what was stopped goes on when it is called again.

    The source must not be changed meanwhile; it stays as it is. CorruptStore when the two do not answer alike.
    """
    old = open_engine(source)
    try:
        new = _target(old, str(source), target, encoder)
        try:
            with new.changing(None):
                copied = copy_records(old, new, progress)
                searches = _compared(old, new)
                with new.write() as batch:
                    batch.set_setting(UNFINISHED, None)
            return Migration(documents=len(new.view()), copied=copied, searches=searches)
        finally:
            new.close()
    finally:
        old.close()


def _target(old: Engine, source: str, target: Path | str, given: Encoder | str | Path | None) -> Engine:
    """Where to copy to, made if missing; refuses an index that is not on its way from there."""
    try:
        new = open_engine(target)
    except IndexNotFound:
        settings = old.view().settings
        try:
            encoder = old.encoder(settings, given)
        except ModelNotFound:
            encoder = None  # one of the caller's own, given whenever the index is opened
        beside = {**{key: old.setting(key) for key in (GENERATOR, SPLITTER, TUNING_KEY)}, UNFINISHED: source}
        model = settings.model if encoder is not None else None
        create_like(target, replace(settings, model=model), encoder, beside)
        return open_engine(target)
    if new.setting(UNFINISHED) != source:
        new.close()
        raise InvalidInput(f"there is another index at {target}; choose a place that has none")
    return new


def _compared(old: Engine, new: Engine) -> int:
    """Compare counts, and what both find for texts of some documents; how many searches that were."""
    before, after = old.view(), new.view()
    if len(before) != len(after):
        raise CorruptStore(
            f"expected {len(before):,} documents after copying, found {len(after):,}: was {old} changed meanwhile? "
            "Migrate again"
        )
    every = max(1, len(before) // COMPARED)
    sample = list(islice(islice(old.records(), 0, None, every), COMPARED))
    for record in sample:
        (ids, scores), (their_ids, their_scores) = (_found(*side, record) for side in ((old, before), (new, after)))
        if ids != their_ids or not np.allclose(scores, their_scores, rtol=0, atol=CLOSE):
            raise CorruptStore(
                f"the copy at {new} finds something else for the text of {record.document.id!r} than {old} does; "
                "remove it and migrate again"
            )
    return len(sample)


def _found(engine: Engine, view: View, record: Record) -> tuple[list[str], Doubles]:
    query, text = record.anchor, record.document.content[:200]
    whole = fused(view.learned(query), view.nearest(query), view.lexical(text), view.settings.fusion)
    best = whole.top(BEST)
    return engine.ids(best.rows.tolist()), best.scores
