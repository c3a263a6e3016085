"""A query's embedding does not depend on what is embedded beside it."""

from __future__ import annotations

import itertools
import shutil
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from incdsi import cores
from incdsi.text.encoders import encode_each
from incdsi.text.encoders.convert import write_onnx
from incdsi.text.encoders.fetch import installed_model
from incdsi.text.encoders.onnx_encoder import OnnxEncoder
from incdsi.text.encoders.sentence_model import read_sentence_model
from incdsi.text.encoders.states import Alone, pooled
from incdsi.text.one_pass import embed, places_of

WORDS = st.sampled_from(["a", "the river", "mountain", "deep", "who won", "sea", "boots", "1966", "?"])
TEXTS = st.lists(st.lists(WORDS, max_size=12).map(" ".join), max_size=24)


@pytest.fixture(scope="module")
def encoder(tiny_bert: Path, tmp_path_factory: pytest.TempPathFactory) -> OnnxEncoder:
    folder, model = tmp_path_factory.mktemp("converted"), read_sentence_model(tiny_bert)
    write_onnx(model, model.fingerprint, folder, link=False)
    return OnnxEncoder(folder)


@given(TEXTS)
@settings(max_examples=40, deadline=None)
def test_many_queries_have_the_bits_that_each_has_alone(encoder: OnnxEncoder, texts: list[str]) -> None:
    assert encoder.has_states
    alone = [encoder.encode_each([text])[0] for text in texts]
    assert encoder.encode_each(texts).tolist() == [one.tolist() for one in alone]


def test_it_is_the_embedding_of_the_graph_but_for_rounding(encoder: OnnxEncoder) -> None:
    texts = ["a river", "who won the sea", "", "the mountain " * 90]
    np.testing.assert_allclose(encoder.encode_each(texts), encoder.encode(texts), atol=2e-6)


@pytest.fixture
def four_cores(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Threads that run the graph, on a machine said to have four cores."""
    seen: list[str] = []
    run = OnnxEncoder._run

    def watched(self: OnnxEncoder, *given: Any, **more: Any) -> list[np.ndarray]:
        seen.append(threading.current_thread().name)
        return run(self, *given, **more)

    monkeypatch.setattr(cores, "count", lambda: 4)
    monkeypatch.setattr(OnnxEncoder, "_run", watched)
    return seen


@given(TEXTS)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_runs_side_by_side_give_the_bits_of_runs_one_after_another(
    encoder: OnnxEncoder, four_cores: list[str], texts: list[str]
) -> None:
    texts = [f"{text} the mountain is deep" for text in texts] * 5
    other, spans = OnnxEncoder(encoder.folder, threads=1), [[(0, len(text))] for text in texts]
    assert OnnxEncoder(encoder.folder).encode(texts).tolist() == other.encode(texts).tolist()
    ours, theirs = OnnxEncoder(encoder.folder).encode_with_parts(texts, spans), other.encode_with_parts(texts, spans)
    assert ours[0].tolist() == theirs[0].tolist()
    assert [[part.tolist() for part in some] for some in ours[1]] == [
        [part.tolist() for part in some] for some in theirs[1]
    ]


def test_many_texts_are_embedded_on_every_core_and_a_long_one_by_all_together(
    encoder: OnnxEncoder, four_cores: list[str]
) -> None:
    here, wide = threading.current_thread().name, OnnxEncoder(encoder.folder)
    progress: list[int] = []
    wide.encode(["the mountain is deep"] * 400, lambda done, _: progress.append(done))
    assert progress == sorted(progress)
    assert progress[-1] == 400
    assert here not in four_cores
    four_cores.clear()
    wide.encode(["the mountain is deep " * 12, "a river"])
    OnnxEncoder(encoder.folder, threads=1).encode(["the mountain is deep"] * 400)
    assert set(four_cores) == {here}


def test_how_many_threads_a_run_has_changes_no_bit(tmp_path: Path) -> None:
    """The runtime's own mean over tokens is added up otherwise by more threads than there are texts; seen at 384."""
    installed = installed_model()
    if installed is None:
        pytest.skip("the default encoder's package is not installed")
    model = read_sentence_model(installed)
    write_onnx(model, model.fingerprint, tmp_path, link=True)
    one, several = OnnxEncoder(tmp_path, threads=1), OnnxEncoder(tmp_path, threads=4)
    for count in (1, 2, 3):
        texts = [f"how deep is the river in {1966 + place}?" for place in range(count)]  # one run
        assert several.encode(texts).tolist() == one.encode(texts).tolist()


@pytest.mark.parametrize("change", ["gone", "another"])
def test_an_encoder_stays_what_it_was_when_its_files_do_not(
    encoder: OnnxEncoder, four_cores: list[str], tmp_path: Path, change: str
) -> None:
    texts, folder = ["the mountain is deep"] * 400, Path(shutil.copytree(encoder.folder, tmp_path / "model"))
    opened = OnnxEncoder(folder)
    if change == "another":
        (copied := tmp_path / "graph").write_bytes((folder / "model.onnx").read_bytes()[::-1])
        copied.replace(folder / "model.onnx")
    else:
        shutil.rmtree(folder)
    assert opened.encode(texts).tolist() == encoder.encode(texts).tolist()


def test_what_interrupts_a_long_encoding_ends_it(encoder: OnnxEncoder, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the first run, which has the longest text, ends before the interrupt; others in its window never begin."""
    interrupted, begun = threading.Event(), list[int]()
    texts = ["the mountain is deep deep", *["the mountain is deep"] * 4000]
    longest, run = len(encoder._tokenise(texts[:1])[0]), OnnxEncoder._run

    def held(self: OnnxEncoder, encodings: Sequence[Any], *outputs: str, **more: Any) -> list[np.ndarray]:
        begun.append(len(encodings))
        assert len(encodings[0]) == longest or interrupted.wait(60)
        return run(self, encodings, *outputs, **more)

    def interrupt(done: int, total: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(cores, "count", lambda: 4)
    monkeypatch.setattr(OnnxEncoder, "_run", held)
    with pytest.raises(KeyboardInterrupt):
        OnnxEncoder(encoder.folder).encode(texts, interrupt)
    interrupted.set()
    threads = cores.threads()
    for waited in [threads.submit(int) for _ in range(100)]:
        waited.result()
    assert len(begun) <= 1 + threads._max_workers


def test_an_encoder_without_token_states_embeds_one_by_one(encoder: OnnxEncoder) -> None:
    class Plain:
        dimension, fingerprint = encoder.dimension, encoder.fingerprint
        encode = staticmethod(encoder.encode)

    texts = ["a river", "the sea", "a mountain is deep"]
    wanted = [encoder.encode([text])[0].tolist() for text in texts]
    assert encode_each(Plain(), texts).tolist() == wanted
    assert encode_each(Plain(), []).shape == (0, encoder.dimension)


@pytest.mark.parametrize("where", [0, -1])
def test_where_a_run_of_several_changes_bits_texts_run_one_by_one(where: int) -> None:
    """A runtime that computes the first or the last of a batch otherwise than alone is seen through."""
    runs = []

    def run(encodings) -> np.ndarray:
        runs.append(len(encodings))
        states = np.array(encodings, dtype=np.float32)[:, :, None].repeat(2, axis=2)
        if len(encodings) > 1:
            states[where] += 1e-6
        return states

    texts = [[float(number)] * 3 for number in range(1, 6)]
    alone = Alone(run)
    for _ in range(3):
        found = dict(alone.states(texts))  # type: ignore[arg-type]
        assert [found[place][0, 0] for place in range(5)] == [1, 2, 3, 4, 5]
    fours = [4, 1, 1, 1, 1, 1, 1, 1]  # two looks, four texts, the fifth
    assert runs == [*fours, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]


def padded(encodings) -> np.ndarray:
    """Token states that are the tokens themselves."""
    longest = max(map(len, encodings))
    return np.array([[*one, *[0.0] * (longest - len(one))] for one in encodings], dtype=np.float32)[:, :, None]


def test_texts_of_nearly_as_many_tokens_share_a_run() -> None:
    runs = []

    def run(encodings) -> np.ndarray:
        runs.append([len(one) for one in encodings])
        return padded(encodings)

    texts = [[float(length)] * length for length in (3, 30, 5, 4, 29, 6)]
    alone = Alone(run)
    for _ in range(2):
        found = dict(alone.states(texts))  # type: ignore[arg-type]
        assert [found[place].ravel().tolist() for place in range(6)] == texts
    assert [one for one in runs if len(one) > 1] == [[30, 29], [6, 5, 4, 3]] * 2
    assert sorted(one for one in runs if len(one) == 1) == [[length] for length in (3, 4, 5, 6, 29, 30)]


def test_where_padding_changes_bits_only_texts_of_as_many_tokens_share_a_run() -> None:
    runs = []

    def run(encodings) -> np.ndarray:
        runs.append([len(one) for one in encodings])
        states = padded(encodings)
        for row, one in enumerate(encodings):
            states[row] += 1e-6 * (states.shape[1] - len(one))
        return states

    texts = [[float(number)] * length for number, length in enumerate((3, 3, 4, 4, 4, 5), start=1)]
    alone = Alone(run)
    for _ in range(9):
        runs.clear()
        found = dict(alone.states(texts))  # type: ignore[arg-type]
        assert [found[place].ravel().tolist() for place in range(6)] == texts
    assert runs == [[5], [4, 4], [4], [3, 3]]


def test_pooling_is_the_mean_of_unit_length() -> None:
    states = np.array([[3, 0], [3, 8]], dtype=np.float32)
    assert pooled(states, normalise=False).tolist() == [3, 4]
    assert pooled(states, normalise=True) == pytest.approx([0.6, 0.8])
    assert pooled(np.zeros((2, 2), np.float32), normalise=True).tolist() == [0, 0]


SENTENCES = ("the river is deep", "who won the sea in 1966?", "a mountain")
TEXT = "  ".join(SENTENCES)
PLACES = [(TEXT.index(one), TEXT.index(one) + len(one)) for one in SENTENCES]


def test_a_text_with_parts_is_embedded_as_without(encoder: OnnxEncoder) -> None:
    texts = [TEXT, "boots", "the sea " * 20, ""]
    anchors, parts = encoder.encode_with_parts(texts, [PLACES, [], [(0, 3)], []])
    assert anchors.tolist() == encoder.encode(texts).tolist()
    assert [len(some) for some in parts] == [3, 0, 1, 0]


def test_a_part_is_the_mean_of_its_tokens_in_the_whole_text(encoder: OnnxEncoder) -> None:
    _, (parts,) = encoder.encode_with_parts([TEXT], [[*PLACES, (0, len(TEXT))]])
    (encoding,) = encoder._tokenise([TEXT])
    (states,) = encoder._run([encoding], "token_states")
    ends = np.cumsum([0, *(len(encoder._tokenise([one])[0]) - 2 for one in SENTENCES)])  # without [CLS] and [SEP]
    wanted = [states[0, 1 + start : 1 + stop] for start, stop in itertools.pairwise(ends)]
    for part, own in zip(parts, [*wanted, states[0, 1:-1]], strict=True):
        assert part is not None
        assert part.tolist() == pooled(own, normalise=True).tolist()


def test_what_the_model_does_not_read_has_no_embedding(encoder: OnnxEncoder) -> None:
    text = "the sea " * 200
    _, (parts,) = encoder.encode_with_parts([text], [[(0, 7), (len(text) - 8, len(text) - 1), (3, 4)]])
    assert [part is None for part in parts] == [False, True, True]


@pytest.mark.parametrize("one_pass", [True, False])
def test_queries_that_stand_in_the_text_need_no_pass_of_their_own(encoder: OnnxEncoder, one_pass: bool) -> None:
    asked: list[str] = []

    class Watched:
        dimension, fingerprint, has_states = encoder.dimension, encoder.fingerprint, True
        encode_with_parts = staticmethod(encoder.encode_with_parts)

        def encode(self, texts: list[str]) -> np.ndarray:
            asked.extend(texts)
            return encoder.encode(texts)

    queries = ["the river  is deep", "boots: a mountain", "a mountain", "who asked"]
    inside = [queries[:3]] if one_pass else ()
    anchors, (vectors,) = embed(Watched(), [TEXT], [queries], inside)
    np.testing.assert_allclose(anchors, encoder.encode([TEXT]), atol=1e-6)
    assert len(vectors) == 4
    assert asked == (["boots: a mountain", "who asked"] if one_pass else [TEXT, *queries])
    if one_pass:
        _, (parts,) = encoder.encode_with_parts([TEXT], [PLACES])
        assert vectors[0].tolist() == parts[0].tolist()  # type: ignore[union-attr]
        assert vectors[2].tolist() == parts[2].tolist()  # type: ignore[union-attr]


def test_a_query_that_begins_inside_a_word_does_not_stand_in_the_text() -> None:
    assert places_of("a river in panama", ["river in", "ma", "A river"]) == {"river in": (2, 10)}
