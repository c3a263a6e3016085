"""The filter language, base files and manifests: what is not right is refused, and never taken for right."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from incdsi.errors import CorruptStore, InvalidFile
from incdsi.filters import matches, matches_everything, parse
from incdsi.store import Store
from incdsi.store.base import Identity, TornBaseError, base_file, read_base_file, write_base_file
from incdsi.text.encoders.manifest import (
    GRAPH,
    MANIFEST,
    TOKENIZER,
    Manifest,
    file_sha256,
    read_manifest,
    require_sound,
    write_manifest,
)
from tests.fuzz.damage import Target, damaged, few, many, only_ours

ARRAYS = {
    "document_vectors": np.arange(12, dtype=np.float32).reshape(4, 3),
    "rows": np.array([1, 2, 3]),
    "ids": np.array([b"a", b"bc"]),
    "names": np.array(["ü", "日本"]),
    "flags": np.array([True, False]),
    "empty": np.zeros((0, 3), np.float32),
}
IDENTITY = Identity("store", 1, 5)
NAMES = st.sampled_from(
    ["and", "or", "not", "lang", "n", "eq", "in", "gt", "gte", "lt", "lte", "", "'; DROP", "\ud800"]
)
LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=4)
    | st.sampled_from(["\ud800", "\0", 2**63, -(2**63), b"en", object, {1, 2}, frozenset({"en"})])
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(NAMES | st.text(max_size=3) | st.integers(), inner, max_size=3)
    ),
    max_leaves=12,
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("formats")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with Store.create(tmp_path_factory.mktemp("filters") / "shop", {}) as store:
        yield store


def any_filter(data: st.DataObject, store: Store) -> None:
    """Also a filter that is any value at all, as a caller from Python may give it."""
    where: Any = data.draw(st.dictionaries(NAMES, VALUES, max_size=3) | VALUES)
    with only_ours():
        tree = parse(where)
        assert store.filter_rows(tree).tolist() == []
        assert matches(tree, {}) or not matches_everything(tree)


def same(found: dict[str, Any]) -> bool:
    return found.keys() == ARRAYS.keys() and all(
        found[name].dtype == array.dtype and np.array_equal(found[name], array) for name, array in ARRAYS.items()
    )


def a_base_file(data: st.DataObject, folder: Path) -> None:
    path = base_file(folder, IDENTITY.generation)
    write_base_file(folder, IDENTITY, ARRAYS)
    path.write_bytes(data.draw(damaged(path.read_bytes())))
    for full in (True, False):
        with contextlib.suppress(TornBaseError, CorruptStore):
            base = read_base_file(folder, IDENTITY, full=full)
            assert same({name: base.arrays[name] for name in base.arrays})


def a_base_of_another(data: st.DataObject, folder: Path) -> None:
    other = Identity(data.draw(st.sampled_from(["store", "other"])), 1, data.draw(st.sampled_from([5, 4, 6])))
    write_base_file(folder, other, ARRAYS)
    if other == IDENTITY:
        assert same(dict(read_base_file(folder, IDENTITY).arrays))
    else:
        with pytest.raises(TornBaseError):
            read_base_file(folder, IDENTITY)


def sound_model(folder: Path) -> Manifest:
    (folder / GRAPH).write_bytes(b"graph")
    (folder / TOKENIZER).write_bytes(b"tokenizer")
    manifest = Manifest(
        dimension=16,
        pooling="mean",
        normalise=True,
        max_length=64,
        pad_id=0,
        prompt="",
        fingerprint="f" * 64,
        precision="float32",
        agreement={"lowest": 1.0, "mean": 1.0},
        files={name: file_sha256(folder / name) for name in (GRAPH, TOKENIZER)},
    )
    write_manifest(folder, manifest)
    return manifest


def well_formed(manifest: Manifest) -> bool:
    """Every field of the kind that is declared; the digests are compared with the files by the reader itself."""
    numbers = (manifest.dimension, manifest.max_length, manifest.pad_id, manifest.format)
    texts = (manifest.pooling, manifest.prompt, manifest.fingerprint, manifest.precision)
    return (
        all(type(number) is int for number in numbers)
        and manifest.dimension > 0
        and manifest.max_length > 0
        and manifest.pad_id >= 0
        and all(isinstance(text, str) for text in texts)
        and isinstance(manifest.normalise, bool)
        and isinstance(manifest.agreement, dict)
    )


def checked(folder: Path) -> Manifest:
    """A model's manifest whose files are what it says."""
    manifest = read_manifest(folder)
    require_sound(folder, manifest)
    return manifest


def a_manifest(data: st.DataObject, folder: Path) -> None:
    sound_model(folder)
    (folder / MANIFEST).write_bytes(data.draw(damaged((folder / MANIFEST).read_bytes())))
    with only_ours():
        assert well_formed(checked(folder))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=3,
)


def a_manifest_with_other_values(data: st.DataObject, folder: Path) -> None:
    state = asdict(sound_model(folder))
    state[data.draw(st.sampled_from(sorted(state)))] = data.draw(JSON)
    (folder / MANIFEST).write_text(json.dumps(state), encoding="utf-8")
    with only_ours():
        assert well_formed(checked(folder))


def test_a_manifest_nested_too_deeply_is_refused(folder: Path) -> None:
    sound_model(folder)
    (folder / MANIFEST).write_text("[" * 200_000)
    with pytest.raises(InvalidFile, match="nested too deeply"):
        read_manifest(folder)


def a_model_file(data: st.DataObject, folder: Path) -> None:
    sound_model(folder)
    path = folder / data.draw(st.sampled_from([GRAPH, TOKENIZER]))
    before = path.read_bytes()
    path.write_bytes(data.draw(damaged(before)))
    if path.read_bytes() == before:
        checked(folder)
    else:
        with pytest.raises(InvalidFile, match="sha256"):
            checked(folder)


TARGETS: list[Target] = [
    a_base_file,
    a_base_of_another,
    a_manifest,
    a_manifest_with_other_values,
    a_model_file,
]


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.__name__)
@few
@given(data=st.data())
def test_a_damaged_format_is_refused_or_the_same(target: Target, folder: Path, data: st.DataObject) -> None:
    target(data, folder)


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.__name__)
@many
@given(data=st.data())
def test_very_many_damaged_formats_are_refused_or_the_same(target: Target, folder: Path, data: st.DataObject) -> None:
    target(data, folder)


@few
@given(data=st.data())
def test_any_filter_is_answered_or_refused(store: Store, data: st.DataObject) -> None:
    any_filter(data, store)


@pytest.mark.slow
@many
@given(data=st.data())
def test_very_many_filters_are_answered_or_refused(store: Store, data: st.DataObject) -> None:
    any_filter(data, store)
