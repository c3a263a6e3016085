"""Tuning judges what it says it does, and resumes where it was stopped."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from incdsi.documents import Document
from incdsi.engine.settings import Method
from incdsi.errors import InvalidFile, InvalidInput, MissingExtra
from incdsi.hyperparameters import SAFE
from incdsi_lab.baselines.protocol import Questions
from incdsi_lab.collection import Collection, Judged
from incdsi_lab.embedded import Embedded
from incdsi_lab.ranking import ranks_among
from incdsi_lab.splits import Split, split
from incdsi_lab.streams import Newcomers, State, add_all
from incdsi_lab.suggesting import Finished, Journal, Range, suggest_ax, suggest_gp
from incdsi_lab.tuning import BETA, STARTS, Rehearsal, f_beta, hyperparameters, ranges_of, tune

H, DOCUMENTS = 16, 80
RANGES = {"x": Range(low=0.0, high=1.0), "y": Range(low=1e-4, high=1.0, log=True)}
NOTHING = Questions.of([], np.empty(0, dtype=np.int64), np.empty((0, H), dtype=np.float32), generated=True)


class FakeEncoder:
    dimension = H
    fingerprint = "f" * 64

    def encode(self, texts: object, progress: object = None) -> NDArray[np.float32]:
        raise AssertionError("tuning works from embeddings that are there")


def near(draw: np.random.Generator, centres: NDArray[np.float64], spread: float) -> NDArray[np.float32]:
    rows = centres + spread * draw.normal(size=centres.shape)
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


@pytest.fixture(scope="module")
def embedded() -> Embedded:
    """Documents whose texts lie off their queries, so that learning pays."""
    draw = np.random.default_rng(0)
    centres = draw.normal(size=(DOCUMENTS, H))
    centres /= np.linalg.norm(centres, axis=1, keepdims=True)
    parts = ("train", "train", "train", "val", "test")
    queries = [
        Judged(id=f"q{number}-{place}", text=f"q{number} {place}", document_id=f"d{place}", split=part)
        for number, part in enumerate(parts)
        for place in range(DOCUMENTS)
    ]
    documents = [Document(id=f"d{place}", text=f"text {place}") for place in range(DOCUMENTS)]
    collection = Collection(name="made", documents=documents, queries=queries)
    return Embedded(
        collection=collection,
        encoder=FakeEncoder(),
        embeddings=near(draw, centres, 0.35),
        queries=Questions.of(
            [q.text for q in queries], collection.owners, near(draw, np.tile(centres, (5, 1)), 0.2), generated=False
        ),
        spans=NOTHING,
        seconds={},
    )


@pytest.fixture(scope="module")
def parts(embedded: Embedded) -> Split:
    return split(embedded.collection, seed=1, fractions=(0.8, 0.1, 0.1))


def start(embedded: Embedded, parts: Split, form: Method) -> State:
    some = Newcomers.of(embedded, embedded.places(parts.initial), [embedded.train])
    return State.of(20 * some.texts, some, form)


def rehearse(embedded: Embedded, parts: Split, form: Method = "general", **how: int | bool) -> Rehearsal:
    return Rehearsal.of(embedded, parts, start(embedded, parts, form), [embedded.train], **how)


class TestRehearsal:
    def test_alone_the_tuning_documents_are_added(self, embedded: Embedded, parts: Split) -> None:
        rehearsal = rehearse(embedded, parts)
        assert (len(rehearsal.state), len(rehearsal.newcomers)) == (len(parts.initial), len(parts.tuning))
        expected = {row.tobytes() for row in embedded.embeddings[embedded.places(parts.tuning)]}
        assert {row.tobytes() for row in rehearsal.newcomers.texts} == expected

    def test_initial_documents_stand_in_for_those_expected(self, embedded: Embedded, parts: Split) -> None:
        rehearsal = rehearse(embedded, parts, expected=20)
        assert len(rehearsal.newcomers) == 20
        assert len(rehearsal.state) == len(parts.initial) - (20 - len(parts.tuning))
        everybody = np.concatenate([rehearsal.state.vectors / 20, rehearsal.newcomers.texts]).round(4)
        assert len(np.unique(everybody, axis=0)) == len(parts.initial) + len(parts.tuning)
        new = embedded.embeddings[embedded.places(parts.new)].round(4)
        assert not {row.tobytes() for row in new} & {row.tobytes() for row in everybody}

    def test_an_adapted_encoder_is_judged_by_what_it_has_not_seen(self, embedded: Embedded, parts: Split) -> None:
        everybody, unseen = (rehearse(embedded, parts, expected=20, adapted=adapted) for adapted in (False, True))
        tuning = embedded.embeddings[embedded.places(parts.tuning)]
        judged = {row.tobytes() for row in unseen.newcomers.texts[unseen.questions.owners]}
        assert judged == {row.tobytes() for row in tuning}
        assert 0 < len(unseen.questions) < len(everybody.questions)
        np.testing.assert_array_equal(unseen.newcomers.texts, everybody.newcomers.texts)

    @pytest.mark.parametrize("form", ["general", "paper"])
    def test_ranks_are_those_among_all_documents(self, embedded: Embedded, parts: Split, form: Method) -> None:
        rehearsal = rehearse(embedded, parts, form, expected=20)
        how = STARTS[form]
        old, new = rehearsal.ranks(how)
        vectors = add_all(rehearsal.state, rehearsal.newcomers, hyperparameters=how).state.vectors
        texts = np.concatenate([rehearsal.state.vectors / 20, rehearsal.newcomers.texts])
        place = {row.round(4).tobytes(): number for number, row in enumerate(texts)}
        owners = np.array([place.get(row.round(4).tobytes(), -1) for row in embedded.embeddings])[embedded.val.owners]
        known = owners >= 0
        ranks = ranks_among(vectors, embedded.val.embeddings[known], owners[known])
        is_old = owners[known] < len(rehearsal.state)
        assert sorted(ranks[is_old]) == sorted(old)
        assert sorted(ranks[~is_old]) == sorted(new)

    def test_another_state_is_refused(self, embedded: Embedded, parts: Split) -> None:
        few = start(embedded, parts, "general").only(np.arange(3))
        with pytest.raises(InvalidInput, match="state of the 64 initial documents"):
            Rehearsal.of(embedded, parts, few, [embedded.train])

    def test_without_validation_queries_there_is_nothing_to_tune_by(self, embedded: Embedded, parts: Split) -> None:
        blind = Split(**{**vars(parts), "val": ()})
        with pytest.raises(InvalidInput, match="validation queries of old documents"):
            rehearse(embedded, blind)


class TestTarget:
    @pytest.mark.parametrize(("new", "old"), [(0.5, 0.8), (0.8, 0.5)])
    def test_it_is_the_papers(self, new: float, old: float) -> None:
        assert f_beta(new, old, 5) == pytest.approx(26 * new * old / (25 * new + old))
        assert f_beta(new, old, 1) == pytest.approx(2 * new * old / (new + old))

    def test_a_high_beta_asks_for_the_old(self) -> None:
        assert f_beta(0.5, 0.8, 100) == pytest.approx(0.8, abs=1e-3)
        assert f_beta(0.5, 0.8, 0) == pytest.approx(0.5)

    def test_nothing_found_is_nothing_reached(self) -> None:
        assert f_beta(0.0, 0.0, BETA) == 0.0

    def test_the_ranges_are_the_papers(self) -> None:
        assert ranges_of("paper")["weights.anchor"] == Range(low=1e-8, high=1e-3, log=True)
        assert ranges_of("general")["weights.anchor"] == Range(low=1e-3, high=1.0, log=True)
        for form in ("paper", "general"):
            assert ranges_of(form)["weights.retrieve"] == Range(low=0.05, high=0.95)
            assert ranges_of(form)["margins.preserve"] == Range(low=0.0, high=10.0)


class TestTune:
    def test_a_search_begins_untuned_and_each_trial_is_judged_after_all_additions(
        self, embedded: Embedded, parts: Split
    ) -> None:
        rehearsal = rehearse(embedded, parts, expected=20)
        tuned = tune(rehearsal, trials=4, seed=3)
        assert hyperparameters(tuned[0].values, "general") == SAFE
        for trial in tuned:
            ranks = rehearsal.ranks(hyperparameters(trial.values, "general"))
            old, new = (np.where(r <= 10, 1 / r, 0).mean() for r in ranks)
            assert (trial.facts["old"], trial.facts["new"]) == pytest.approx((old, new))
            assert trial.target == pytest.approx(f_beta(new, old, BETA))

    def test_stopped_and_resumed_is_the_same_as_never_stopped(
        self, embedded: Embedded, parts: Split, tmp_path: Path
    ) -> None:
        rehearsal = rehearse(embedded, parts)
        whole = tune(rehearsal, trials=5)

        def stop(done: int, total: int) -> None:
            if done >= 300:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            tune(rehearsal, trials=5, journal=tmp_path / "tuning.log", progress=stop)
        resumed = tune(rehearsal, trials=5, journal=tmp_path / "tuning.log")
        assert [t.values for t in resumed] == [t.values for t in whole]
        again = tune(rehearsal, trials=5, journal=tmp_path / "tuning.log")
        assert again == resumed

    def test_the_journal_of_another_search_is_refused(self, embedded: Embedded, parts: Split, tmp_path: Path) -> None:
        rehearsal = rehearse(embedded, parts)
        tune(rehearsal, trials=1, journal=tmp_path / "tuning.log")
        with pytest.raises(InvalidFile, match="another seed"):
            tune(rehearsal, trials=1, seed=2, journal=tmp_path / "tuning.log")

    def test_progress_ends_at_its_total(self, embedded: Embedded, parts: Split) -> None:
        seen: list[tuple[int, int]] = []
        tune(rehearse(embedded, parts), trials=2, progress=lambda done, total: seen.append((done, total)))
        assert seen == sorted(seen)
        assert seen[-1] == (200, 200)


def hill(values: dict[str, float]) -> float:
    """Highest at x = 0.7 and y = 0.01."""
    return -((values["x"] - 0.7) ** 2) - 0.05 * (np.log10(values["y"]) + 2) ** 2


class TestSuggestions:
    def test_after_ten_trials_the_past_tells_where_to_look(self) -> None:
        grid = [{"x": x, "y": y} for x in (0.1, 0.3, 0.5, 0.6, 0.9) for y in (1e-3, 1e-1)]
        values = suggest_gp(RANGES, [Finished(values=v, target=hill(v), facts={}) for v in grid], seed=0)
        assert hill(values) > np.median([hill(v) for v in grid])

    @pytest.mark.slow
    def test_the_gaussian_process_climbs(self) -> None:
        finished: list[Finished] = []
        for _ in range(16):
            values = suggest_gp(RANGES, finished, seed=0)
            finished.append(Finished(values=values, target=hill(values), facts={}))
        first, later = (max(t.target for t in some) for some in (finished[:10], finished[10:]))
        assert later > first
        assert later > -0.01
        for trial in finished:
            assert all(RANGES[name].low <= value <= RANGES[name].high for name, value in trial.values.items())

    def test_the_seed_and_the_past_decide(self) -> None:
        past = [Finished(values={"x": 0.5, "y": 0.1}, target=1.0, facts={})]
        assert suggest_gp(RANGES, past, seed=4) == suggest_gp(RANGES, past, seed=4)
        assert suggest_gp(RANGES, past, seed=4) != suggest_gp(RANGES, past, seed=5)

    def test_the_journal_keeps_every_digit(self, tmp_path: Path) -> None:
        trial = Finished(values={"x": 1 / 3, "y": 3e-4}, target=-0.1234567890123, facts={"old": 0.1})
        Journal(tmp_path / "deep" / "j.log", {"a": 1}, RANGES).add(trial)
        assert Journal(tmp_path / "deep" / "j.log", {"a": 1}, RANGES).finished == [trial]

    @pytest.mark.parametrize("content", [b"hello\n", b"\x00\xff\x01", b'{"a": 1}\n', b"7\n"])
    def test_a_file_that_is_no_journal_is_refused_and_left_alone(self, tmp_path: Path, content: bytes) -> None:
        path = tmp_path / "notes.txt"
        path.write_bytes(content)
        with pytest.raises(InvalidFile, match="not a journal of trials"):
            Journal(path, {"a": 1}, RANGES)
        assert path.read_bytes() == content

    def test_a_line_torn_by_a_crash_is_passed_over(self, tmp_path: Path) -> None:
        trial = Finished(values={"x": 0.5, "y": 0.1}, target=1.0, facts={})
        path = tmp_path / "j.log"
        Journal(path, {}, RANGES).add(trial)
        with path.open("ab") as file:
            file.write(b'{"op_code": 4, "worker_id": "torn')
        assert Journal(path, {}, RANGES).finished == [trial]

    @pytest.mark.filterwarnings("ignore")  # Ax calls what it has deprecated itself
    @pytest.mark.slow  # Ax takes its time
    def test_ax_learns_from_the_trials_it_is_given(self) -> None:
        pytest.importorskip("ax", reason="the extra `paper` is not installed")
        places = [(x, y) for x in (0.1, 0.5, 0.9) for y in (1e-3, 1e-2, 1e-1)]
        past = [Finished(values={"x": x, "y": y}, target=-((x - 0.5) ** 2), facts={}) for x, y in places]
        values = suggest_ax(RANGES, past, seed=0)
        assert values["x"] == pytest.approx(0.5, abs=0.2)
        assert all(RANGES[name].low <= value <= RANGES[name].high for name, value in values.items())

    def test_without_ax_a_sentence_says_what_to_install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(__import__("sys").modules, "ax", None)
        with pytest.raises(MissingExtra, match=r"incdsi\[paper\]"):
            suggest_ax(RANGES, [], seed=0)
