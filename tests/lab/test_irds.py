"""`irds:` names a collection of ir_datasets for a study."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from incdsi.errors import InvalidFile
from incdsi_lab.experiments.datasets import read_dataset
from tests.irds_samples import made

pytest.importorskip("ir_datasets")
JUDGED = "q1 0 boots 1\nq1 0 stove 0\nq2 0 stove 2\nq2 0 boots 1\n"


def test_a_study_takes_the_documents_and_the_queries_of_every_part(tmp_path: Path) -> None:
    with made(tmp_path, "train", "dev", "test", judged=JUDGED) as name:
        found = read_dataset(name).collection
    assert found.name == "tiny"
    assert [(one.id, one.text) for one in found.documents] == [
        ("boots", "Waterproof boots."),
        ("stove", "A gas stove."),
    ]
    assert [(one.id, one.text, one.document_id, one.split) for one in found.queries] == [
        (f"{part}/{id}", text, document, part)
        for part in ("train", "val", "test")
        for id, text, document in (
            ("q1", "dry feet", "boots"),
            ("q2", "tea on a mountain", "stove"),
            ("q2+2", "tea on a mountain", "boots"),
        )
    ]


def test_a_collection_that_no_study_can_use_is_refused_in_a_sentence(tmp_path: Path) -> None:
    with made(tmp_path, "test", judged=JUDGED) as name, pytest.raises(InvalidFile, match="there is no train"):
        read_dataset(name)
    with (
        made(tmp_path, "train", "test", judged=JUDGED) as name,
        pytest.raises(InvalidFile, match="irds:tiny, not"),
    ):
        read_dataset(f"{name}/test")
    with made(tmp_path, "train", "test") as name, pytest.raises(InvalidFile, match="unknown query 'q3'"):
        read_dataset(name)
    with pytest.raises(InvalidFile, match="has no dataset 'no/such'"):
        read_dataset("irds:no/such")


@pytest.mark.parametrize("command", [("incdsi.cli", "repro"), ("incdsi_lab", "living")])
def test_both_studies_take_such_a_name(command: tuple[str, str], tmp_path: Path) -> None:
    called = [sys.executable, "-m", command[0], command[1], "irds:no/such", "--out", str(tmp_path / "out")]
    done = subprocess.run(called, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (
        1,
        "irds:no/such: ir-datasets has no dataset 'no/such'; see `ir_datasets list`\n",
    )
    assert not (tmp_path / "out").exists()
