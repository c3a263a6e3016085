"""The model of an index that adopted another encoder goes when nobody reads by it any more."""

from __future__ import annotations

import importlib.util
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fault_injection import Trial
from index_samples import answers, docs
from powerloss_survival import State, recorded

from incdsi import durable
from incdsi.engine.local import LocalEngine, models
from incdsi.errors import ModelNotFound
from incdsi.index import Index
from incdsi.store import Store
from incdsi.text.encoders import as_encoder

pytestmark = [
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="the models are exported with torch"),
    pytest.mark.folder,
]


@pytest.fixture(scope="module")
def two_models(exported: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any]:
    """The tiny BERT, and one that cuts texts earlier: another function, another fingerprint."""
    import dataclasses

    from incdsi.text.encoders.manifest import write_manifest
    from incdsi.text.encoders.onnx_encoder import OnnxEncoder

    folder = tmp_path_factory.mktemp("other") / "model"
    shutil.copytree(exported.folder, folder)
    write_manifest(folder, dataclasses.replace(exported.manifest, max_length=8, fingerprint="f" * 64))
    return exported, OnnxEncoder(folder)


class KilledError(BaseException):
    """Stands for the end of the process: nothing of ours catches it."""


def kept(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / "model").iterdir())


def name(encoder: Any) -> str:
    return str(encoder.fingerprint[:16])


def test_an_encoder_of_the_callers_own_may_hold_a_model(tmp_path: Path, exported: Any) -> None:
    class Own:
        """As people wrap what they have."""

        model = object()
        dimension, fingerprint = exported.dimension, "own"

        def encode(self, texts: Any, progress: Any = None) -> Any:
            return exported.encode(texts, progress)

    with Index.create(tmp_path / "shop", Own()) as index:
        index.add_many(docs(3))
        assert len(index) == 3
    assert not (tmp_path / "shop" / "model").exists()


def test_the_old_model_is_removed_when_nobody_reads(tmp_path: Path, two_models: tuple[Any, Any]) -> None:
    old, new = two_models
    with Index.create(tmp_path / "shop", old) as index:
        index.add_many(docs(5))
        assert kept(tmp_path / "shop") == [name(old)]
        index.adopt(new)
        assert kept(tmp_path / "shop") == [name(new)]
        found = answers(index)
    with Index.open(tmp_path / "shop") as again:
        assert answers(again) == found


def test_the_old_model_stays_while_a_snapshot_of_before_is_read(tmp_path: Path, two_models: tuple[Any, Any]) -> None:
    old, new = two_models
    with Index.create(tmp_path / "shop", old) as index, Store.open(tmp_path / "shop", writer=False) as reader:
        index.add_many(docs(5))
        changes = reader.changes(0)
        next(changes.upserts)
        index.adopt(new)
        assert kept(tmp_path / "shop") == sorted([name(old), name(new)])
        assert len(list(changes.upserts)) == 4
        index.compact()
        assert kept(tmp_path / "shop") == [name(new)]


def test_a_reader_follows_to_the_new_model(tmp_path: Path, two_models: tuple[Any, Any]) -> None:
    old, new = two_models
    with Index.create(tmp_path / "shop", old) as index, Index.open(tmp_path / "shop") as reader:
        index.add_many(docs(5))
        assert answers(reader) == answers(index)
        index.adopt(new)
        assert kept(tmp_path / "shop") == [name(new)]
        assert answers(reader) == answers(index)


def test_an_opening_that_meets_a_swap_opens_the_new_model(
    tmp_path: Path, two_models: tuple[Any, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = two_models
    with Index.create(tmp_path / "shop", old) as index:
        index.add_many(docs(5))
        open_model = models.open_model

        def swapped_meanwhile(*arguments: Any) -> Any:
            monkeypatch.setattr(models, "open_model", open_model)
            index.adopt(new)  # after the settings were read, before the model was opened
            return open_model(*arguments)

        monkeypatch.setattr(models, "open_model", swapped_meanwhile)
        with Index.open(tmp_path / "shop") as reader:
            assert answers(reader) == answers(index)


def test_a_model_that_is_missing_is_said_to_be(tmp_path: Path, two_models: tuple[Any, Any]) -> None:
    old, _ = two_models
    Index.create(tmp_path / "shop", old).close()
    models.remove_others(tmp_path / "shop", None)
    with pytest.raises(ModelNotFound):
        Index.open(tmp_path / "shop")


@pytest.mark.parametrize("moment", ["before", "after"])
def test_killed_beside_the_swap_nothing_is_lost_and_the_next_writer_tidies(
    tmp_path: Path, two_models: tuple[Any, Any], monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    old, new = two_models

    def die(*_: object) -> None:
        raise KilledError

    with Index.create(tmp_path / "shop", old) as index:
        index.add_many(docs(5))
        with monkeypatch.context() as patch:
            patch.setattr(LocalEngine, "swap" if moment == "before" else "drop_old_encoders", die)
            with pytest.raises(KilledError):
                index.adopt(new)
    assert kept(tmp_path / "shop") == sorted([name(old), name(new)])
    with Index.open(tmp_path / "shop") as index:
        assert index.info().encoder == (old if moment == "before" else new).fingerprint
        index.add_many(docs(1, start=5))
        assert kept(tmp_path / "shop") == [name(old if moment == "before" else new)]
        assert len(index.search("boots")) == 6
        assert index.verify() == []


def test_a_backup_has_the_model_it_needs_and_no_other(tmp_path: Path, two_models: tuple[Any, Any]) -> None:
    old, new = two_models
    with Index.create(tmp_path / "shop", old) as index:
        index.add_many(docs(5))
        index.adopt(new)
        index.backup(tmp_path / "backup")
        with Index.open(tmp_path / "backup") as copy:
            assert answers(copy) == answers(index)
    assert kept(tmp_path / "backup") == [name(new)]


def test_a_model_to_adapt_is_loaded_with_torch_and_any_other_without(
    tiny_bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INCDSI_MODELS", str(tmp_path))
    plain, able = as_encoder(tiny_bert), as_encoder(str(tiny_bert), trainable=True)
    assert (type(plain).__name__, type(able).__name__) == ("OnnxEncoder", "TorchEncoder")
    assert plain.fingerprint == able.fingerprint
    assert as_encoder(plain, trainable=True) is plain


def test_indexes_share_the_bytes_of_a_model_in_the_cache_and_keep_them_when_it_is_emptied(
    tmp_path: Path, tiny_bert: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INCDSI_MODELS", str(tmp_path / "models"))
    for shop in ("one", "two"):
        with Index.create(tmp_path / shop, str(tiny_bert)) as index:
            index.add_many(docs(3))
    weights = [next((tmp_path / shop / "model").rglob("model.safetensors")) for shop in ("one", "two")]
    assert weights[0].samefile(weights[1])
    assert weights[0].stat().st_nlink == 3  # and the cache; the model's own folder has its own
    shutil.rmtree(tmp_path / "models")
    with Index.open(tmp_path / "one") as one, Index.open(tmp_path / "two") as two:
        assert answers(one) == answers(two)
        one.backup(tmp_path / "backup")
    copy = next((tmp_path / "backup" / "model").rglob("model.safetensors"))
    assert copy.stat().st_nlink == 1


def test_a_model_in_a_folder_of_the_users_own_is_copied(tmp_path: Path, two_models: tuple[Any, Any]) -> None:
    Index.create(tmp_path / "shop", two_models[0].folder).close()
    assert {path.stat().st_nlink for path in (tmp_path / "shop" / "model").rglob("*") if path.is_file()} == {1}


def test_without_links_a_model_is_copied(tmp_path: Path, tiny_bert: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise OSError("another disk")

    monkeypatch.setenv("INCDSI_MODELS", str(tmp_path / "models"))
    monkeypatch.setattr("os.link", refused)
    with Index.create(tmp_path / "shop", str(tiny_bert)) as index:
        index.add_many(docs(3))
        found = answers(index)
    with Index.open(tmp_path / "shop") as again:
        assert answers(again) == found
    assert {path.stat().st_nlink for path in (tmp_path / "shop" / "model").rglob("*") if path.is_file()} == {1}


def test_a_reader_never_takes_vectors_of_one_encoder_for_those_of_another(
    tmp_path: Path, two_models: tuple[Any, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """There, away and back again between two looks of a reader: settings and vectors are read at one moment."""
    old, new = two_models
    with Index.create(tmp_path / "shop", old) as index:
        index.add_many(docs(6))
        with Index.open(tmp_path / "shop") as reader:
            found = answers(reader)
            index.adopt(new)
            changes = reader.engine.store.changes

            def late(since: int) -> Any:
                monkeypatch.undo()
                then = changes(since)  # what the new encoder made
                index.adopt(old)
                return then

            monkeypatch.setattr(reader.engine.store, "changes", late)
            assert reader.search("boots")
            assert answers(reader) == answers(index) == found


def adopted(old: Any, new: Any, *, killed: Callable[[pytest.MonkeyPatch], None] | None = None) -> Any:
    """An index that adopts, after a process that was killed while it did; only the end is acknowledged."""

    def act(root: Path, acknowledge: Callable[[], None]) -> None:
        with Index.create(root / "shop", old) as index:
            index.add_many(docs(3))
            if killed is not None:
                with pytest.MonkeyPatch.context() as patch:
                    killed(patch)
                    with pytest.raises(KilledError):
                        index.adopt(new)
            else:
                acknowledge()
            index.adopt(new)
            acknowledge()

    return act


def killed_before_the_sync(patch: pytest.MonkeyPatch) -> None:
    def die(folder: Path) -> None:
        if folder.name == "model":
            raise KilledError
        fsync(folder)

    fsync = models.fsync
    patch.setattr(models, "fsync", die)
    patch.setattr(durable, "fsync", lambda path: None if path.name == "model" else fsync(path))


def look(root: Path) -> State:
    """What the index answers, by the model that its folder holds."""
    if not (root / "shop" / "store.db").exists():
        return {"shop": None}
    with Index.open(root / "shop") as index:
        assert index.verify() == []
        return {"shop": (index.info().encoder, answers(index))}


def test_an_adopted_model_survives_a_power_cut(tmp_path: Path, scratch: Path, two_models: tuple[Any, Any]) -> None:
    run = recorded(tmp_path, adopted(*two_models), look, scratch)
    assert list(run.losses(every=10, seed=random.randrange(2**31), acknowledged=1)) == []


def test_a_model_that_a_killed_process_left_survives_a_power_cut(
    tmp_path: Path, scratch: Path, two_models: tuple[Any, Any]
) -> None:
    run = recorded(tmp_path, adopted(*two_models, killed=killed_before_the_sync), look, scratch)
    assert list(run.losses(every=1, seed=random.randrange(2**31), acknowledged=1)) == []


def test_a_model_that_was_half_removed_is_not_taken_for_a_whole_one(
    tmp_path: Path, two_models: tuple[Any, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = two_models

    def die(folder: Path, **_: object) -> None:
        if (folder / "model.onnx").exists():
            (folder / "model.onnx").unlink()
            raise KilledError

    with Index.create(tmp_path / "shop", old) as index, Store.open(tmp_path / "shop", writer=False) as reader:
        index.add_many(docs(3))
        with monkeypatch.context() as patch:
            patch.setattr(models.shutil, "rmtree", die)
            with pytest.raises(KilledError):
                index.adopt(new)
        snapshot = reader.changes(0)  # while somebody reads, nothing is tidied
        index.add_many(docs(1, start=3))
        index.adopt(old)
        snapshot.upserts.close()
        found = answers(index)
    with Index.open(tmp_path / "shop") as again:
        assert answers(again) == found


@pytest.mark.parametrize("every", [41, pytest.param(1, marks=pytest.mark.slow)])
def test_a_disk_that_fails_while_a_model_is_adopted(
    tmp_path: Path, scratch: Path, two_models: tuple[Any, Any], every: int
) -> None:
    old, new = two_models
    with Index.create(tmp_path / "shop", old) as index:
        index.add_many(docs(3))
    trial = Trial(
        template=tmp_path,
        scratch=scratch,
        open=lambda root: Index.open(root / "shop"),
        verb=lambda index, root: index.adopt(new),
        look=look,
        use=lambda index: index.add_many(docs(1, start=3)),
    )
    assert list(trial.problems(every=every, seed=random.randrange(2**31))) == []
