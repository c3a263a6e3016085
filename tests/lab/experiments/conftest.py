"""One finished study of a tiny collection, every experiment run once, for all tests here."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from incdsi_lab.experiments.laboratory import chosen, run_study
from incdsi_lab.experiments.study import Study
from tests.lab.experiments.study_problems import study
from tests.training.training_problems import tiny_encoder


@dataclass(frozen=True)
class Finished:
    study: Study
    page: Path
    progress: list[tuple[int, int]]


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    folder = tmp_path_factory.mktemp("study")
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    made = study(tiny_encoder(folder / "encoder"), folder)
    progress: list[tuple[int, int]] = []
    page = run_study(made, chosen([]), command="incdsi repro tiny", progress=lambda *at: progress.append(at))
    torch.set_num_threads(before)
    return Finished(study=made, page=page, progress=progress)
