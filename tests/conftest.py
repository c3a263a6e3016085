"""Tiny real models, made once: a BERT for sentence-transformers and a T5; and a folder for what is used once."""

from __future__ import annotations

import gc
import importlib.util
import logging
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import structlog
from hypothesis import HealthCheck, settings

from incdsi.text.encoders.onnx_encoder import OnnxEncoder
from tests.rows.screens import use_the_screen_asked_for

settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")  # how busy it is decides nothing
use_the_screen_asked_for()
# What other tests left, such as sessions of onnxruntime, is the parent's to take down: in a forked child their threads
# are gone, and taking them down would wait for ever.
os.register_at_fork(before=gc.collect, after_in_child=gc.disable)

# Those that need the extra `train`.
collect_ignore = [] if importlib.util.find_spec("torch") else ["lab", "training"]

WORDS = """the a river mountain boots waterproof hiking who won where is deep how long sea flows to and of
title query document word""".split()  # noqa: SIM905


# Minutes, or half of one: a worker that begins with such a file last leaves the others idle.
LONG = ("test_study.py", "test_processors.py", "test_linear_time.py", "test_demo.py", "test_irds.py", "test_arrival.py")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: item.path.name not in LONG)


def pytest_report_header() -> list[str]:
    return [f"tests/{folder} is left out: torch is not installed" for folder in collect_ignore]


@pytest.fixture(autouse=True)
def _logs_of_one_test() -> Iterator[None]:
    """A command that serves sends logs to its own stderr, which is closed when the next test begins."""
    yield
    structlog.reset_defaults()
    root = logging.getLogger()
    for handler in root.handlers[:]:
        if isinstance(handler.formatter, structlog.stdlib.ProcessorFormatter):
            root.removeHandler(handler)


@pytest.fixture(scope="session")
def tiny_bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a BERT of one layer, h = 16, random weights, mean pooling, unit length."""
    torch = pytest.importorskip("torch")
    pytest.importorskip("sentence_transformers")
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, Transformer
    from transformers import BertConfig, BertModel, BertTokenizerFast

    plain = tmp_path_factory.mktemp("bert")
    letters = [chr(c) for c in range(ord("!"), ord("~") + 1)]
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS, *letters, *(f"##{c}" for c in letters)]
    (plain / "vocab.txt").write_text("\n".join(dict.fromkeys(vocabulary)), encoding="utf-8")
    BertTokenizerFast.from_pretrained(plain, model_max_length=64).save_pretrained(plain)
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(dict.fromkeys(vocabulary)),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=64,
        initializer_range=0.5,
    )
    BertModel(config).save_pretrained(plain)
    folder = tmp_path_factory.mktemp("sentence-bert")
    transformer = Transformer(str(plain))
    SentenceTransformer(modules=[transformer, Pooling(16), Normalize()], device="cpu").save(str(folder))
    return folder


@pytest.fixture(scope="session")
def tiny_t5(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a T5 of one layer and a tokenizer trained here."""
    torch = pytest.importorskip("torch")
    pytest.importorskip("transformers")
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers
    from tokenizers.decoders import Metaspace
    from transformers import PreTrainedTokenizerFast, T5Config, T5ForConditionalGeneration

    tokenizer = Tokenizer(models.Unigram())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = Metaspace()
    trainer = trainers.UnigramTrainer(
        vocab_size=80, special_tokens=["<pad>", "</s>", "<unk>"], unk_token="<unk>", show_progress=False
    )
    tokenizer.train_from_iterator([" ".join(WORDS[i:] + WORDS[:i]) for i in range(len(WORDS))], trainer)
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<pad>", eos_token="</s>", unk_token="<unk>", model_max_length=512
    )
    folder = tmp_path_factory.mktemp("t5")
    fast.save_pretrained(folder)
    torch.manual_seed(0)
    config = T5Config(
        vocab_size=len(fast), d_model=16, d_kv=8, d_ff=32, num_layers=1, num_heads=2, decoder_start_token_id=0
    )
    T5ForConditionalGeneration(config).save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def torch_encoder(tiny_bert: Path) -> Any:
    """The tiny BERT as a TorchEncoder."""
    from incdsi.text.encoders.torch_encoder import TorchEncoder

    return TorchEncoder.load(tiny_bert, device="cpu")


@pytest.fixture(scope="session")
def exported(torch_encoder: Any, tmp_path_factory: pytest.TempPathFactory) -> OnnxEncoder:
    """The tiny BERT exported."""
    from incdsi.text.encoders.export import export_onnx

    return export_onnx(torch_encoder, tmp_path_factory.mktemp("exported") / "model")


@pytest.fixture
def graph_at_hand(exported: OnnxEncoder, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spares the seconds torch needs to trace the tiny BERT again; the rest of the export is real."""
    graph = exported.folder / "model.onnx"
    monkeypatch.setattr("incdsi.text.encoders.export._write_graph", lambda _, path: shutil.copy(graph, path))


@pytest.fixture
def scratch() -> Iterator[Path]:
    """Memory, where there is some: thousands of images are written and read once."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        yield Path(folder)
