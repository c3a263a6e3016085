"""Embeddings are made once, in the order of the collection, and kept."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from incdsi.documents import Document
from incdsi.progress import Progress
from incdsi.training import embeddings
from incdsi_lab.collection import Collection
from incdsi_lab.data import read_jsonl
from incdsi_lab.embedded import KnownTexts, embed
from incdsi_lab.experiments.datasets import Dataset, embedded
from tests.lab import data_samples as samples


class HashEncoder:
    """Each text to numbers of its own, and a count of the texts it was asked for."""

    dimension = 4
    fingerprint = "0123456789abcdef"

    def __init__(self, stop_after: int | None = None) -> None:
        self.asked = 0
        self._stop_after = stop_after

    def encode(self, texts: Sequence[str], progress: Progress | None = None) -> NDArray[np.float32]:
        if self._stop_after is not None and self.asked >= self._stop_after:
            raise KeyboardInterrupt
        self.asked += len(texts)
        if progress is not None and texts:
            progress(len(texts), len(texts))
        rows = [np.frombuffer(hashlib.sha256(text.encode()).digest()[:4], dtype=np.uint8) for text in texts]
        return np.array(rows, dtype=np.float32).reshape(len(texts), 4)


@pytest.fixture
def collection(tmp_path: Path) -> Collection:
    return read_jsonl(samples.ours(tmp_path / "made"))


def test_what_was_drawn_from_a_collection_is_not_embedded_again(collection: Collection, tmp_path: Path) -> None:
    encoder = HashEncoder()
    dataset = Dataset(collection=collection)
    drawn = dataset.sampled(10, seed=3)
    alone = embedded(drawn, encoder, cache=tmp_path / "alone")
    whole = embedded(dataset, encoder, cache=tmp_path / "cache")
    before = encoder.asked
    found = embedded(drawn, encoder, cache=tmp_path / "cache")
    assert encoder.asked == before
    for one, other in zip((found.queries, found.spans), (alone.queries, alone.spans), strict=True):
        assert one.texts == other.texts
        np.testing.assert_array_equal(one.embeddings, other.embeddings)
    np.testing.assert_array_equal(found.embeddings, alone.embeddings)
    share = len(found.queries) / len(whole.queries)
    assert found.seconds["encode queries"] == pytest.approx(share * whole.seconds["encode queries"])


def test_the_whole_is_embedded_at_once_when_enough_of_it_is_wanted(collection: Collection, tmp_path: Path) -> None:
    drawn = Dataset(collection=collection).sampled(10, seed=3)
    alone, whole = HashEncoder(), HashEncoder()
    embedded(drawn, alone, cache=tmp_path / "alone")
    embedded(drawn, whole, cache=tmp_path / "whole", draws=5)
    assert whole.asked > 2 * alone.asked


def test_texts_are_looked_up_and_what_is_not_known_is_encoded_and_counted(
    collection: Collection, tmp_path: Path
) -> None:
    encoder = HashEncoder()
    data = embed(collection, encoder, cache=tmp_path / "cache")
    known, before = KnownTexts(data), encoder.asked
    contents = [document.content for document in collection.documents]
    np.testing.assert_array_equal(known.encode(contents), data.embeddings)
    assert (known.encoded, encoder.asked) == (0, before)
    known.encode(["never seen", contents[0], "never seen"])
    assert known.encoded == 1
    assert known.encode([]).shape == (0, 4)


def test_everything_is_embedded_in_its_place(collection: Collection, tmp_path: Path) -> None:
    encoder = HashEncoder()
    found = embed(collection, encoder, cache=tmp_path / "cache")
    np.testing.assert_array_equal(found.embeddings, encoder.encode([d.content for d in collection.documents]))
    np.testing.assert_array_equal(found.test.embeddings, encoder.encode([q.text for q in collection.of("test")]))
    assert [len(part) for part in (found.train, found.val, found.test)] == [64, 32, 32]
    assert [collection.documents[owner].id for owner in found.val.owners] == [
        query.document_id for query in collection.of("val")
    ]
    assert len(found.spans) > 0
    for text, owner in zip(found.spans.texts, found.spans.owners, strict=True):
        assert text.split()[0] in collection.documents[owner].content
    assert set(found.seconds) == {"encode documents", "encode queries", "encode spans", "generate"}


def test_queries_are_found_by_id_and_by_document(collection: Collection, tmp_path: Path) -> None:
    found = embed(collection, HashEncoder(), cache=tmp_path / "cache")
    asked = found.asked(["test:3:5", "train:1:0"])
    assert asked.texts == (samples.question(5, "test"), samples.question(0, "train"))
    np.testing.assert_array_equal(asked.owners, [5, 0])
    grouped = found.by_document([found.train, found.val])
    assert [len(rows) for rows in grouped] == [3] * samples.COUNT
    np.testing.assert_array_equal(grouped[7][:2], found.train.embeddings[found.train.owners == 7])
    np.testing.assert_array_equal(found.places(["d3", "d1"]), [3, 1])


def test_a_drawn_part_has_its_own_documents_and_queries_alone(collection: Collection, tmp_path: Path) -> None:
    whole = embed(collection, HashEncoder(), cache=tmp_path / "cache")
    part = whole.only(np.array([5, 2]))
    assert [document.id for document in part.documents] == [collection.documents[place].id for place in (5, 2)]
    np.testing.assert_array_equal(part.embeddings, whole.embeddings[[5, 2]])
    for split in ("train", "val", "test"):
        asked = whole.part(split)
        for own, place in enumerate((5, 2)):
            mine, theirs = part.part(split).owners == own, asked.owners == place
            np.testing.assert_array_equal(part.part(split).embeddings[mine], asked.embeddings[theirs])
    assert set(part.spans.owners.tolist()) <= {0, 1}


def test_a_second_time_nothing_is_encoded(collection: Collection, tmp_path: Path) -> None:
    first = embed(collection, HashEncoder(), cache=tmp_path / "cache")
    encoder = HashEncoder()
    second = embed(collection, encoder, cache=tmp_path / "cache")
    assert encoder.asked == 0
    np.testing.assert_array_equal(first.spans.embeddings, second.spans.embeddings)
    assert first.seconds["encode spans"] == second.seconds["encode spans"]


def test_other_texts_and_damaged_files_are_embedded_again(collection: Collection, tmp_path: Path) -> None:
    first = embed(collection, HashEncoder(), cache=tmp_path / "cache")
    other = replace(collection, documents=[*collection.documents, Document(id="late", text="one more")])
    assert len(embed(other, HashEncoder(), cache=tmp_path / "cache").embeddings) == len(first.embeddings) + 1
    for file in (tmp_path / "cache").rglob("*.npy"):
        file.write_bytes(file.read_bytes()[:-5])
    again = embed(collection, HashEncoder(), cache=tmp_path / "cache")
    np.testing.assert_array_equal(again.embeddings, first.embeddings)
    np.testing.assert_array_equal(again.queries.embeddings, first.queries.embeddings)


def test_an_interrupted_run_resumes_where_it_was_and_knows_what_it_cost(
    collection: Collection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embeddings, "SHARD", 10)
    with pytest.raises(KeyboardInterrupt):
        embed(collection, HashEncoder(stop_after=20), cache=tmp_path / "cache")
    spent = sum(float(file.read_text()) for file in (tmp_path / "cache").rglob("*.seconds"))
    assert spent > 0
    encoder = HashEncoder()
    resumed = embed(collection, encoder, cache=tmp_path / "cache")
    everything = [
        *(document.content for document in collection.documents),
        *resumed.queries.texts,
        *resumed.spans.texts,
    ]
    assert encoder.asked == len(everything) - 20
    np.testing.assert_array_equal(
        np.concatenate([resumed.embeddings, resumed.queries.embeddings, resumed.spans.embeddings]),
        HashEncoder().encode(everything),
    )
    assert resumed.seconds["encode documents"] > spent


def test_another_encoder_has_a_cache_of_its_own(collection: Collection, tmp_path: Path) -> None:
    embed(collection, HashEncoder(), cache=tmp_path / "cache")
    other = HashEncoder()
    other.fingerprint = "fedcba9876543210"
    embed(collection, other, cache=tmp_path / "cache")
    assert other.asked
    assert {path.name for path in (tmp_path / "cache").iterdir()} == {"made-0123456789ab", "made-fedcba987654"}


def test_progress_grows_to_its_total(collection: Collection, tmp_path: Path) -> None:
    for _ in range(2):  # made, then from the cache
        seen: list[tuple[int, int]] = []
        embed(collection, HashEncoder(), cache=tmp_path, progress=lambda done, total: seen.append((done, total)))  # noqa: B023
        assert seen == sorted(seen)
        assert seen[-1][0] == seen[-1][1]


def test_progress_counts_characters_so_that_the_time_left_is_about_right(
    collection: Collection, tmp_path: Path
) -> None:
    seen: list[int] = []
    embed(collection, HashEncoder(), cache=tmp_path, progress=lambda done, total: seen.append(done))
    documents = sum(len(document.content) for document in collection.documents)
    assert documents in seen
    assert documents + sum(len(query.text) for query in collection.queries) in seen
