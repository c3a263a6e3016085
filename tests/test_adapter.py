"""What adapters rely on: an index by name, any JSON metadata, ids that may be missing."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from incdsi.adapter import KEPT, delete_known, opened, packed, unpacked
from incdsi.errors import IndexNotFound, InvalidDocument, MissingExtra
from tests.index.index_samples import TOY, docs
from tests.server.servers import running

scalars = (
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
)
texts = st.text(st.characters(exclude_categories=["Cs"]))
values = st.recursive(scalars | texts, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner))
metadatas = st.dictionaries(texts.filter(lambda name: name != KEPT), values, max_size=5)


@given(metadatas, st.dictionaries(texts, values, max_size=2))
def test_any_json_metadata_comes_back_and_what_is_kept_beside_it(
    metadata: dict[str, Any], kept: dict[str, Any]
) -> None:
    assert unpacked(packed("boots", "Boots.", metadata, kept)) == (metadata, kept)


def test_plain_metadata_stays_to_be_filtered_on_and_a_title_is_one() -> None:
    document = packed("boots", "Boots.", {"title": "Boots 17", "tags": ["new"], "page": {"from": 1}})
    assert document.title == "Boots 17"
    assert document.metadata == {"title": "Boots 17", "tags": ("new",), KEPT: '{"metadata": {"page": {"from": 1}}}'}


@pytest.mark.parametrize("metadata", [{KEPT: 1}, {"page": {"at": Path()}}, {"page": {"size": float("nan")}}])
def test_what_cannot_be_kept_is_refused(metadata: dict[str, Any]) -> None:
    with pytest.raises(InvalidDocument, match="document 'boots'"):
        packed("boots", "Boots.", metadata)


def test_an_index_is_named_by_folder_or_address_or_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(IndexNotFound):
        opened(tmp_path / "shop")
    monkeypatch.setattr("incdsi.index.index.as_encoder", lambda _: TOY)
    made = opened(str(tmp_path / "shop"), create=True)
    with made, running(made, tmp_path / "shop") as url, opened(url, create=True) as remote:
        made.add_many(docs(3))
        assert len(remote) == 3
        assert opened(remote) is remote
        assert delete_known(remote, ["d1", "no such", "d1"]) == 1
        assert delete_known(made, ["d0", "d2"]) == 2
        assert delete_known(made, ["d0"]) == 0


@pytest.mark.parametrize("framework", ["pyterrier", "mteb", "dspy"])
def test_a_module_for_a_framework_that_is_missing_says_what_to_install(
    framework: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (framework, *(name for name in sys.modules if name.startswith(f"{framework}."))):
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.delitem(sys.modules, f"incdsi.{framework}", raising=False)
    with pytest.raises(MissingExtra, match=f"pip install {framework}"):
        importlib.import_module(f"incdsi.{framework}")
