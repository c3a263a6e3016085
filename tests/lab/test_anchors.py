"""The anchors: each by hand on documents whose embeddings and words are chosen for it."""

from __future__ import annotations

import numpy as np
import pytest

from incdsi.documents import Document
from incdsi.errors import InvalidInput
from incdsi_lab.anchors import (
    BestSentence,
    KnownWords,
    Meaning,
    NearestQuestion,
    PlainHybrid,
    RankHybrid,
    Words,
    anchors,
    nearest,
)
from incdsi_lab.baselines.protocol import Part, Questions, joined

AXES = np.eye(4, dtype=np.float32)


def asked(*some: tuple[str, int, int], generated: bool) -> Questions:
    """Questions as (text, owner, axis)."""
    texts, owners, axes = zip(*some, strict=True) if some else ((), (), ())
    embeddings = AXES[list(axes)].reshape(len(texts), 4)
    return Questions.of(texts, np.array(owners, dtype=np.int64), embeddings, generated=generated)


def three_documents() -> Part:
    """Texts on the first three axes; the second has a sentence and the third a question on the fourth."""
    texts = ["red apples", "green pears", "blue plums"]
    known = asked(("violet fruit", 2, 3), generated=False)
    return Part(
        documents=tuple(Document(id=text, text=text) for text in texts),
        embeddings=AXES[:3],
        queries=joined([known, asked(("pears", 1, 3), generated=True)]),
        held_out=asked(generated=False),
    )


def first(anchor, text, axis):
    """The position of the best document."""
    anchor.fit(three_documents())
    return int(anchor.search(asked((text, 0, axis), generated=False), 1).positions[0, 0])


def test_each_anchor_ranks_by_what_it_is_named_for():
    assert first(Meaning(), "plums", 1) == 1
    assert first(Words(), "plums", 1) == 2
    assert first(KnownWords(), "violet", 0) == 2
    assert first(BestSentence(), "plums", 3) == 1
    assert first(NearestQuestion(), "pears", 3) == 2
    assert first(PlainHybrid(), "plums", 2) == first(RankHybrid(), "plums", 2) == 2


def test_without_sentences_a_document_is_as_near_as_its_text():
    assert first(BestSentence(), "-", 0) == 0


def test_generated_queries_are_no_known_questions():
    part = three_documents()
    known = KnownWords()
    known.fit(part)
    assert known._texts(part) == ["red apples", "green pears", "blue plums\nviolet fruit"]


@pytest.mark.parametrize("place", range(7))
def test_adding_afterwards_is_beginning_with_all(place):
    part, question = three_documents(), asked(("violet plums", 2, 3), ("red", 0, 0), generated=False)
    whole, grown = anchors()[place], anchors()[place]
    whole.fit(part)
    grown.fit(part.first(1))
    grown.add(part.take(np.array([1, 2])))
    np.testing.assert_array_equal(whole.scores(question), grown.scores(question))
    assert whole.ranks(question).tolist() == grown.ranks(question).tolist()


@pytest.mark.parametrize("anchor", anchors(), ids=lambda anchor: anchor.name)
def test_nothing_can_be_asked_before_there_is_anything(anchor):
    with pytest.raises(InvalidInput, match="call fit first"):
        anchor.search(asked(("red", 0, 0), generated=False), 1)


def test_a_tie_counts_against_the_right_document():
    words = Words()
    words.fit(three_documents())
    assert words.ranks(asked(("nothing of this", 0, 0), generated=False)).tolist() == [3]


def test_the_nearest_row_of_each_document_counts():
    draw = np.random.default_rng(0)
    queries, rows = draw.standard_normal((3, 5)).astype("f4"), draw.standard_normal((9, 5)).astype("f4")
    owners = np.array([3, 0, 0, 3, 1, 1, 1, 0, 3])
    found = nearest(queries, rows, owners, 4)
    for query, scores in zip(queries, found, strict=True):
        expected = [
            max((float(query @ rows[row]) for row in np.flatnonzero(owners == d)), default=-np.inf) for d in range(4)
        ]
        np.testing.assert_allclose(scores, expected, rtol=1e-5)
