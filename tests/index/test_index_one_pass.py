"""An index remembers whether sentences of a document are embedded with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from incdsi import Document
from incdsi.index import Index
from incdsi.text.encoders import load_encoder
from incdsi.text.encoders.onnx_encoder import OnnxEncoder
from incdsi.text.one_pass import places_of

pytest.importorskip("torch")  # tiny_bert is made with it
DOCUMENT = Document(id="a", text="The river is deep. Who won the sea in 1966? Nobody did, said the mountain.")


@pytest.mark.parametrize("one_pass", [True, False])
def test_it_stays_as_it_was_created(
    tmp_path: Path, tiny_bert: Path, one_pass: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INCDSI_MODELS", str(tmp_path / "models"))
    encoder = load_encoder(tiny_bert)
    assert isinstance(encoder, OnnxEncoder)
    Index.create(tmp_path / "index", encoder, one_pass=one_pass).close()
    with Index.open(tmp_path / "index") as index:
        index.add(DOCUMENT, ["who asked this"])
        record = index.engine.get("a")
        assert record.anchor.tolist() == encoder.encode([DOCUMENT.content])[0].tolist()
        generated = [query for query in record.queries if query.generated]
        places = places_of(DOCUMENT.content, [query.text for query in generated])
        assert len(places) == len(generated) > 1
        _, (parts,) = encoder.encode_with_parts([DOCUMENT.content], [list(places.values())])
        for query, part in zip(generated, parts, strict=True):
            assert part is not None
            assert (query.embedding.tolist() == part.tolist()) is one_pass
        (asked,) = (query for query in record.queries if not query.generated)
        assert asked.embedding @ encoder.encode(["who asked this"])[0] == pytest.approx(1.0)
