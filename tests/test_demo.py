"""The demo reads the user's own Python and goes through every verb."""

from __future__ import annotations

import hashlib
import io

import numpy as np
import pytest
from rich.console import Console

from incdsi.demo.__main__ import LESSON, MOST, Demo
from incdsi.demo.corpus import choice, package_documentation, python_documentation
from incdsi.errors import InvalidInput
from incdsi.index import Index


class WordEncoder:
    """A stand-in with real behaviour: texts that share words are near each other."""

    dimension = 48
    fingerprint = "words"

    def encode(self, texts, progress=None):
        rows = [sum((self._word(word) for word in text.lower().split()), np.zeros(48)) for text in texts]
        lengths = [max(float(np.linalg.norm(row)), 1e-9) for row in rows]
        return np.array([row / length for row, length in zip(rows, lengths, strict=True)], np.float32).reshape(-1, 48)

    def _word(self, word):
        seed = int.from_bytes(hashlib.sha256(word.encode()).digest()[:4], "big")
        return np.random.default_rng(seed).standard_normal(48)


def test_the_corpus_is_the_documentation_of_this_python():
    documents = {document.id: document for document in python_documentation()}
    assert len(documents) > 2000
    assert "topic:with" in documents
    assert "json.dumps" in documents
    assert documents["json.dumps"].metadata["kind"] == "function"


def test_a_choice_keeps_the_order_and_thins_the_functions_only_when_it_must():
    documents = python_documentation()
    others = [document.id for document in documents if document.metadata["kind"] != "function"]
    chosen = [document.id for document in choice(documents, len(others) + 100)]
    assert len(chosen) == len(set(chosen)) == len(others) + 100
    assert set(others) < set(chosen)
    assert chosen == [document.id for document in documents if document.id in set(chosen)]
    assert [document.id for document in choice(documents, 5)] == others[:5]
    assert choice(documents, len(documents) + 1) == documents


def test_what_is_taught_is_among_what_is_taken():
    assert LESSON[1] in {document.id for document in choice(python_documentation(), MOST)}


def test_a_packages_documentation_is_read_without_importing_it():
    assert any(document.id.startswith("rich.") for document in package_documentation("rich"))
    assert package_documentation("no_such_package_here") == []


def test_a_folder_of_the_users_own_is_left_alone(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    demo = Demo(Console(file=io.StringIO()), tmp_path, 60, WordEncoder())
    with pytest.raises(InvalidInput, match="is not an empty folder; choose a new or an empty folder"):
        demo.run()
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_the_demo_adds_searches_teaches_deletes_and_says_what_to_type_next(tmp_path):
    seen = io.StringIO()
    encoder = WordEncoder()
    Demo(Console(file=seen, width=120), tmp_path / "demo", 60, encoder).run()
    shown = seen.getvalue()
    for words in ("60 documents", "60 of its", "added live", "rank", "after", "deleted in", "incdsi search"):
        assert words in shown
    assert "every byte verified" in shown
    with Index.open(tmp_path / "demo", encoder) as index:
        assert len(index) == 60 + 8 - 1
