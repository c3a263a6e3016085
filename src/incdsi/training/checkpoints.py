"""Checkpoints that survive kill -9 and resume to the same bits.

    <folder>/step-00000120/state.json           format, run, step and the counters of the loop
    <folder>/step-00000120/tensors.safetensors  parameters, optimizer moments, the best epoch's parameters

There is no random state to save: batches and dropout are drawn from (seed, epoch) and (seed, step).
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from incdsi.durable import appearing_folder, remove_unfinished
from incdsi.errors import InvalidFile, InvalidInput, UnsupportedFormat

FORMAT = 2
STATE = "state.json"
TENSORS = "tensors.safetensors"


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """Everything a run needs to resume after `step` steps."""

    step: int
    tensors: dict[str, Tensor]
    state: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoints:
    """The checkpoints of one run; `run` is a digest of everything that must match to resume."""

    folder: Path
    run: str

    def write(self, checkpoint: Checkpoint) -> None:
        """Write the checkpoint durably, then remove older ones; writing the same step again does nothing."""
        target = self.folder / f"step-{checkpoint.step:08d}"
        if target.exists():
            return
        with appearing_folder(target) as unfinished:
            tensors = {name: _plain(tensor) for name, tensor in checkpoint.tensors.items()}
            save_file(tensors, unfinished / TENSORS)
            state = {"format": FORMAT, "run": self.run, "step": checkpoint.step, **checkpoint.state}
            (unfinished / STATE).write_text(json.dumps(state), encoding="utf-8")
        for older in self._found():
            if older != target:
                shutil.rmtree(older, ignore_errors=True)

    def read(self) -> Checkpoint | None:
        """The newest checkpoint, or None; raises InvalidInput if it belongs to another run."""
        found = self._found()
        return self._load(found[-1]) if found else None

    def clear_unfinished(self) -> None:
        """Remove what a killed writer left behind."""
        remove_unfinished(self.folder)

    def _found(self) -> list[Path]:
        # A folder half removed has lost files; the newest was complete when it was renamed.
        return sorted(path for path in self.folder.glob("step-*") if (path / STATE).is_file())

    def _load(self, path: Path) -> Checkpoint:
        try:
            state = json.loads((path / STATE).read_text(encoding="utf-8"))
            if state["format"] != FORMAT:
                raise UnsupportedFormat(
                    f"expected a checkpoint of format {FORMAT} in {path}, found {state['format']}; "
                    "resume with the incdsi that wrote it, or remove it"
                )
            if state["run"] != self.run:
                raise InvalidInput(
                    f"the checkpoint in {self.folder} belongs to another run: other documents, queries, encoder or "
                    "settings; choose another folder or remove this one"
                )
            return Checkpoint(step=state["step"], tensors=load_file(path / TENSORS), state=state)
        except (json.JSONDecodeError, KeyError, TypeError, OSError, SafetensorError) as error:
            raise InvalidFile(f"the checkpoint cannot be read ({error}); remove it", path=path) from error


def _plain(tensor: Tensor) -> Tensor:
    return tensor.detach().cpu().contiguous()


def optimizer_tensors(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """The optimizer's moments and step counts by `<parameter number>.<name>`."""
    return {
        f"{number}.{name}": value
        for number, moments in optimizer.state_dict()["state"].items()
        for name, value in moments.items()
    }


def restore_optimizer(optimizer: torch.optim.Optimizer, tensors: Mapping[str, Tensor]) -> None:
    """The inverse of `optimizer_tensors`; learning rates are left alone."""
    state: dict[int, dict[str, Tensor]] = {}
    for key, value in tensors.items():
        number, _, name = key.partition(".")
        state.setdefault(int(number), {})[name] = value
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})


def under(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The tensors whose names start with `prefix`, which is removed."""
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}
