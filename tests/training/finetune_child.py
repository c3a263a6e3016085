"""One of several processes that finetune together, as a launcher would start it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
import torch

if __name__ == "__main__":
    torch.set_num_threads(1)
    from accelerate import PartialState
    from test_finetune import run
    from training_problems import curve

    folder, rank = Path(sys.argv[1]), os.environ["RANK"]
    *_, (_, rows, outcome) = run(folder / f"model{rank}")
    np.save(folder / f"rank{rank}.npy", rows)
    told = f'{{"processes": {PartialState().num_processes}, "epochs": {curve(outcome.epochs)}}}'
    (folder / f"rank{rank}.json").write_text(told)
    PartialState().destroy_process_group()
