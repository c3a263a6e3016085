"""Finetuning: encoder and document vectors learn together, repeatably, in one process or two."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from training_problems import corpus, curve, tiny_encoder

from incdsi.training.finetune import train_finetune
from incdsi.training.pairs import TextPairs, document_positions, flatten, hold_out
from incdsi.training.settings import FinetuneSettings

SETTINGS = FinetuneSettings(epochs=3, batch_size=16, learning_rate=3e-3, row_learning_rate=0.3, patience=9, memory=1)
CHILD = Path(__file__).with_name("finetune_child.py")


def pairs() -> tuple[list[str], TextPairs, TextPairs]:
    documents, queries = corpus()
    positions = document_positions(documents)
    training, held_out = hold_out(queries, seed=0)
    contents = [document.content for document in documents]
    return contents, flatten(training, positions), flatten(held_out, positions)


def run(folder: Path, *, dropout: float = 0.0, settings: FinetuneSettings = SETTINGS):
    encoder = tiny_encoder(folder, dropout=dropout)
    contents, training, held_out = pairs()
    start = settings.scale * encoder.encode(contents)
    return encoder, start, train_finetune(encoder, start, training, held_out, settings)


def test_encoder_and_rows_both_learn_and_the_callers_encoder_is_untouched(tmp_path: Path) -> None:
    encoder, start, (trained, rows, outcome) = run(tmp_path)
    assert encoder.fingerprint == tiny_encoder(tmp_path / "again").fingerprint
    assert trained.fingerprint != encoder.fingerprint
    assert (rows != start).any()
    losses = [epoch.loss for epoch in outcome.epochs[1:]]
    assert losses == sorted(losses, reverse=True)
    assert trained.max_length == encoder.max_length
    best = outcome.epochs[outcome.best_epoch].quality
    assert best is not None
    _, _, held_out = pairs()
    scores = trained.encode(held_out.texts) @ rows.T
    assert 100 * np.mean(scores.argmax(1) == held_out.owners) == pytest.approx(best.hits_at_1)


def test_two_runs_with_one_seed_are_identical_even_with_dropout(tmp_path: Path) -> None:
    runs = [run(tmp_path / str(number), dropout=0.2)[2] for number in range(2)]
    assert runs[0][1].tobytes() == runs[1][1].tobytes()
    assert curve(runs[0][2].epochs) == curve(runs[1][2].epochs)
    assert runs[0][0].fingerprint == runs[1][0].fingerprint


def test_the_large_rate_of_the_document_vectors_does_not_make_them_shrink(tmp_path: Path) -> None:
    still = replace(SETTINGS, epochs=1, learning_rate=1e-9, epsilon=1e9, weight_decay=0.5)  # nothing learns
    encoder = tiny_encoder(tmp_path)
    contents, training, _ = pairs()
    start = still.scale * encoder.encode(contents)
    nothing_held_out = TextPairs(texts=(), owners=np.empty(0, dtype=np.int64))  # so the last epoch is kept
    _, rows, outcome = train_finetune(encoder, start, training, nothing_held_out, still)
    assert outcome.best_epoch == 1
    np.testing.assert_allclose(rows, start, rtol=1e-6, atol=1e-6)


@pytest.mark.slow  # a launcher of its own
def test_bfloat16_is_used_when_the_launcher_asks_for_it(tmp_path: Path) -> None:
    script = f"""
import json, sys
from pathlib import Path
sys.path.insert(0, {str(Path(__file__).parent)!r})
import incdsi.training.finetune as finetune
from test_finetune import run
*_, (_, rows, outcome) = run(Path({str(tmp_path)!r}))
precision = finetune._accelerator().mixed_precision
print(json.dumps([precision, str(rows.dtype), [epoch.loss for epoch in outcome.epochs[1:]]]))
"""
    asked = {**os.environ, "ACCELERATE_MIXED_PRECISION": "bf16"}
    child = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, env=asked)
    assert child.returncode == 0, child.stderr
    precision, kept, losses = json.loads(child.stdout.splitlines()[-1])
    assert (precision, kept) == ("bf16", "float32")
    assert losses == sorted(losses, reverse=True)


@pytest.mark.slow
def test_two_gloo_processes_give_the_loss_curve_of_one(tmp_path: Path) -> None:
    *_, (_, rows, outcome) = run(tmp_path / "alone")
    children = _launch(tmp_path)
    for child in children:
        _, errors = child.communicate(timeout=180)
        assert child.returncode == 0, errors
    for rank in range(2):
        told = json.loads((tmp_path / f"rank{rank}.json").read_text())
        assert told["processes"] == 2
        for mine, theirs in zip(outcome.epochs[1:], told["epochs"][1:], strict=True):
            assert theirs["loss"] == pytest.approx(mine.loss, abs=1e-5)
        np.testing.assert_allclose(np.load(tmp_path / f"rank{rank}.npy"), rows, atol=1e-2)
    assert (tmp_path / "rank0.npy").read_bytes() == (tmp_path / "rank1.npy").read_bytes()


def _launch(folder: Path) -> list[subprocess.Popen[str]]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    shared = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "OMP_NUM_THREADS": "1"}
    return [
        subprocess.Popen(
            [sys.executable, str(CHILD), str(folder)],
            env=os.environ | shared | {"RANK": str(rank), "LOCAL_RANK": str(rank)},
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
