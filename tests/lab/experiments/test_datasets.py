"""A dataset by name or folder, in whatever layout it lies there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from incdsi.documents import Document
from incdsi.errors import InvalidInput
from incdsi_lab.collection import Collection
from incdsi_lab.data.location import BESIDE
from incdsi_lab.experiments.datasets import Dataset, Given, read_dataset, require_texts, settings_for
from incdsi_lab.experiments.settings import NQ_PASSAGES, PAPER, SQUAD
from tests.lab.experiments.study_problems import collection

ROOT = Path(__file__).parents[3]


def write(folder: Path, documents: int = 6) -> Path:
    folder.mkdir(parents=True)
    rows = [{"id": f"d{place}", "title": "", "text": f"text {place}"} for place in range(documents)]
    (folder / "docs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    queries = [
        {"id": f"q{place}-{split}", "text": f"query {place} {split}", "doc_id": f"d{place}", "split": split}
        for place in range(documents)
        for split in ("train", "test")
    ]
    (folder / "queries.jsonl").write_text("".join(json.dumps(row) + "\n" for row in queries))
    return folder


def test_a_folder_is_a_dataset(tmp_path: Path) -> None:
    dataset = read_dataset(str(write(tmp_path / "mine")))
    assert dataset.collection.name == "mine"
    assert len(dataset.collection.documents) == 6


@pytest.mark.parametrize("inside", ["squad_plus", "."])
def test_a_named_dataset_lies_where_data_says(tmp_path: Path, inside: str) -> None:
    write(tmp_path / "data" / inside if inside != "." else tmp_path / "data")
    assert read_dataset("squad", tmp_path / "data").collection.name == "squad_plus"


def test_a_named_dataset_lies_where_the_environment_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "nq_passages")
    monkeypatch.setenv("INCDSI_DATA", str(tmp_path))
    assert read_dataset("nq-passages").collection.name == "nq_passages"


def test_a_dataset_that_is_nowhere_is_refused_with_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("nq320k", "nowhere"):
        with pytest.raises(InvalidInput, match=r"one of squad, .*, irds:NAME or a folder.*--data"):
            read_dataset(name)


def test_sampling_keeps_queries_of_the_documents_drawn(tmp_path: Path) -> None:
    dataset = read_dataset(str(write(tmp_path / "mine")))
    some = dataset.sampled(3, seed=1)
    ids = {document.id for document in some.collection.documents}
    assert len(ids) == 3
    assert {query.document_id for query in some.collection.queries} == ids
    assert some.collection.digest == dataset.sampled(3, seed=1).collection.digest
    assert dataset.sampled(0, seed=1) is dataset


def test_each_dataset_has_its_size() -> None:
    assert settings_for("squad") == SQUAD
    assert settings_for("nq-passages") == NQ_PASSAGES
    assert settings_for("nq320k") == PAPER
    assert settings_for("anything else") == SQUAD


def test_a_collection_without_any_text_is_refused() -> None:
    made = collection()
    documents = [Document(id=document.id, text="") for document in made.documents]
    bare = Collection(name="bare", documents=documents, queries=made.queries)
    with pytest.raises(InvalidInput, match="no document of bare has a text"):
        require_texts(Dataset(collection=bare))
    require_texts(Dataset(collection=made))


def test_given_queries_are_handed_out(tmp_path: Path) -> None:
    document = read_dataset(str(write(tmp_path / "mine"))).collection.documents[0]
    assert Given({"d0": ["a", "b"]})(document) == ["a", "b"]
    assert Given({})(document) == []


@pytest.mark.slow
@pytest.mark.skipif(not (ROOT / BESIDE / "squad_plus").is_dir(), reason="needs ../shared/data/squad_plus")
def test_the_real_squad_is_found_beside_the_repository(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    dataset = read_dataset("squad")
    assert len(dataset.collection.documents) == 9_748
    assert len(dataset.split(0).new) == 877
