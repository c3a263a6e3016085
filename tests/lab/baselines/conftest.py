"""The tiny encoder that training's tests use, and two small parts embedded by it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from incdsi_lab.baselines.protocol import Part
from tests.lab.baselines.baseline_problems import part
from tests.training.training_problems import tiny_encoder

if TYPE_CHECKING:
    from incdsi.text.encoders.torch_encoder import TorchEncoder


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> TorchEncoder:
    return tiny_encoder(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="session")
def initial(encoder: TorchEncoder) -> Part:
    return part(encoder, 12, seed=0)


@pytest.fixture(scope="session")
def new(encoder: TorchEncoder) -> Part:
    return part(encoder, 5, seed=1)
