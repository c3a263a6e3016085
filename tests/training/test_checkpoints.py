"""Checkpoints: a run killed or stopped anywhere ends where an uninterrupted one does, to the bit."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from training_child import MODES, frozen
from training_problems import curve

from incdsi.errors import InvalidFile, InvalidInput, UnsupportedFormat
from incdsi.training.checkpoints import Checkpoint, Checkpoints
from incdsi.training.records import Moment

CHILD = Path(__file__).with_name("training_child.py")


def run_and_kill(mode: str, folder: Path, after: int) -> None:
    """SIGKILL a run at a moment of its choosing soon after it told of step `after`."""
    child = subprocess.Popen(
        [sys.executable, str(CHILD), mode, str(folder)],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
    assert child.stdout is not None
    for line in child.stdout:
        if int(line) >= after:
            break
    child.send_signal(signal.SIGKILL)
    child.communicate()
    assert child.returncode == -signal.SIGKILL


@pytest.mark.slow  # a run that is killed, and one that is not
@pytest.mark.parametrize("mode", ["frozen", "finetune"])
def test_a_killed_run_resumes_to_the_same_bits(mode: str, tmp_path: Path) -> None:
    after = random.randrange(2, 20)
    run_and_kill(mode, tmp_path, after)
    steps: list[int] = []
    resumed, outcome = MODES[mode](tmp_path, tmp_path / "checkpoint", lambda moment: steps.append(moment.step))
    whole, expected = MODES[mode](tmp_path / "whole", None)
    assert steps[0] > 1, f"killed after step {after}, but training began anew"
    assert resumed.tobytes() == whole.tobytes(), f"killed after step {after}"
    assert curve(outcome.epochs) == curve(expected.epochs)
    assert outcome.best_epoch == expected.best_epoch


@pytest.fixture
def interruptible() -> Iterator[None]:
    """A process started in the background ignores Ctrl-C; these tests press it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize("mode", ["frozen", "finetune"])
@pytest.mark.parametrize("stop", [1, 12, 13])
def test_ctrl_c_keeps_the_finished_step_and_says_how_to_go_on(mode: str, stop: int, tmp_path: Path) -> None:
    def press(moment: Moment) -> None:
        if moment.step == stop:
            signal.raise_signal(signal.SIGINT)

    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt, match=f"stopped after step {stop} of .* to resume"):
        MODES[mode](tmp_path, tmp_path / "checkpoint", press)
    assert signal.getsignal(signal.SIGINT) is before
    steps: list[int] = []
    resumed, _ = MODES[mode](tmp_path, tmp_path / "checkpoint", lambda moment: steps.append(moment.step))
    assert steps[0] == stop + 1
    assert resumed.tobytes() == MODES[mode](tmp_path / "whole", None)[0].tobytes()


def test_ctrl_c_raised_by_an_observer_is_the_same(tmp_path: Path) -> None:
    def press(moment: Moment) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt, match="stopped after step 1"):
        frozen(tmp_path, tmp_path / "checkpoint", press)
    with pytest.raises(KeyboardInterrupt, match="nothing was kept"):
        frozen(tmp_path, None, press)


def test_of_several_processes_one_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for rank, written in (("1", False), ("0", True)):
        monkeypatch.setenv("RANK", rank)
        frozen(tmp_path, tmp_path / "checkpoint")
        assert any((tmp_path / "checkpoint").glob("*")) == written


def test_a_finished_run_is_not_trained_again(tmp_path: Path) -> None:
    rows, outcome = frozen(tmp_path, tmp_path / "checkpoint")
    steps: list[Moment] = []
    again, repeated = frozen(tmp_path, tmp_path / "checkpoint", steps.append)
    assert not steps
    assert again.tobytes() == rows.tobytes()
    assert repeated.epochs == outcome.epochs


def small(step: int) -> Checkpoint:
    return Checkpoint(step=step, tensors={"rows": torch.arange(6.0).reshape(2, 3) + step}, state={"loss": 0.1})


def test_only_the_newest_is_kept_and_an_unfinished_one_is_ignored(tmp_path: Path) -> None:
    checkpoints = Checkpoints(folder=tmp_path, run="a")
    assert checkpoints.read() is None
    checkpoints.write(small(1))
    checkpoints.write(small(2))
    (tmp_path / ".step-00000003.incdsi-0123").mkdir()
    assert sorted(path.name for path in tmp_path.glob("step-*")) == ["step-00000002"]
    found = checkpoints.read()
    assert found is not None
    assert found.step == 2
    assert found.state["loss"] == 0.1
    torch.testing.assert_close(found.tensors["rows"], small(2).tensors["rows"], rtol=0, atol=0)
    checkpoints.clear_unfinished()
    assert [path.name for path in tmp_path.iterdir()] == ["step-00000002"]


def test_another_runs_checkpoint_is_refused_with_a_sentence(tmp_path: Path) -> None:
    Checkpoints(folder=tmp_path, run="a").write(small(1))
    with pytest.raises(InvalidInput, match=r"belongs to another run: .* choose another folder"):
        Checkpoints(folder=tmp_path, run="b").read()


def test_damage_and_other_formats_are_named(tmp_path: Path) -> None:
    checkpoints = Checkpoints(folder=tmp_path, run="a")
    checkpoints.write(small(1))
    tensors = tmp_path / "step-00000001" / "tensors.safetensors"
    tensors.write_bytes(tensors.read_bytes()[:-5])
    with pytest.raises(InvalidFile, match="the checkpoint cannot be read"):
        checkpoints.read()
    state = tmp_path / "step-00000001" / "state.json"
    for other in (1, 99):
        state.write_text(json.dumps({"format": other}))
        with pytest.raises(UnsupportedFormat, match=f"format 2 in .*, found {other}; resume with the incdsi"):
            checkpoints.read()


def test_nothing_on_disk_is_a_pickle(tmp_path: Path) -> None:
    frozen(tmp_path, tmp_path / "checkpoint")
    files = [path for path in (tmp_path / "checkpoint").rglob("*") if path.is_file()]
    assert {path.name for path in files} == {"state.json", "tensors.safetensors"}
