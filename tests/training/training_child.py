"""A training run in its own process, to be killed: prints every finished step, writes its rows at the end."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import torch


def frozen(folder: Path, checkpoint: Path | None, observe=None):
    from training_problems import synthetic

    from incdsi.training.checkpoints import Checkpoints
    from incdsi.training.frozen import train_frozen
    from incdsi.training.settings import FrozenSettings

    problem = synthetic()
    settings = FrozenSettings(epochs=4, batch_size=32, learning_rate=0.3, patience=9, checkpoint_seconds=0)
    checkpoints = Checkpoints(folder=checkpoint, run="frozen") if checkpoint else None
    return train_frozen(
        20 * problem.text,
        problem.training,
        problem.held_out,
        settings,
        checkpoints=checkpoints,
        observe=observe,
    )


def finetune(folder: Path, checkpoint: Path | None, observe=None):
    from test_finetune import pairs
    from training_problems import tiny_encoder

    from incdsi.training.checkpoints import Checkpoints
    from incdsi.training.finetune import train_finetune
    from incdsi.training.settings import FinetuneSettings

    settings = FinetuneSettings(
        epochs=4,
        batch_size=8,
        learning_rate=3e-3,
        row_learning_rate=0.3,
        patience=9,
        checkpoint_seconds=0,
    )
    encoder = tiny_encoder(folder / "tiny", dropout=0.2)
    contents, training, held_out = pairs()
    checkpoints = Checkpoints(folder=checkpoint, run="finetune") if checkpoint else None
    trained, rows, outcome = train_finetune(
        encoder,
        20 * encoder.encode(contents),
        training,
        held_out,
        settings,
        checkpoints=checkpoints,
        observe=observe,
    )
    weights = [parameter.detach().numpy().ravel() for parameter in trained.model.parameters()]
    return np.concatenate([rows.ravel(), *weights]), outcome


MODES = {"frozen": frozen, "finetune": finetune}

if __name__ == "__main__":
    torch.set_num_threads(1)
    mode, folder = sys.argv[1], Path(sys.argv[2])
    MODES[mode](folder, folder / "checkpoint", lambda moment: print(moment.step, flush=True))
