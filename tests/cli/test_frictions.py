"""What people try first, each from an empty folder: it works, or it is one clear sentence."""

from __future__ import annotations

import json
import socket
import subprocess
from pathlib import Path

import pytest

from incdsi import Document, Index
from incdsi.errors import DuplicateDocument, InvalidDocument
from tests.cli.conftest import DOCUMENTS, Run, write
from tests.cli.test_processes import command
from tests.index.index_samples import TOY

SEMICOLONS = "sku;name;description\nb-1;Boots;Waterproof leather boots\nt-1;Tent;Stays up in wind\n"
TABS = "id\ttext\nx\tA rope\ny\tA lamp\n"


def found(run: Run) -> list[str]:
    return [json.loads(line)["id"] for line in run("export").stdout.splitlines()]


def test_a_table_with_columns_of_its_own_is_one_error_that_says_what_to_name(run: Run, encoder: str) -> None:
    table = write("products.csv", ["sku,name,description\n", *(f"p-{n},Boots {n},Dry feet\n" for n in range(50))])
    said = run("add", table, "--encoder", encoder, code=1).stderr
    assert said.splitlines() == [
        "products.csv: no column 'id' or 'text'; the columns are sku, name, description; "
        "say which to use with --id-field and --text-field"
    ]
    run("add", table, "--encoder", encoder, "--id-field", "sku", "--title-field", "name", "--text-field", "description")
    assert len(found(run)) == 50


def test_semicolons_tabs_arrays_and_stdin_are_taken_as_they_are(run: Run, encoder: str) -> None:
    fields = ["--id-field", "sku", "--title-field", "name", "--text-field", "description"]
    run("add", write("semi.csv", [SEMICOLONS]), "--encoder", encoder, *fields)
    run("add", "-", "--format", "tsv", stdin=TABS)
    array = json.dumps([{"id": "j1", "text": "A stove"}, {"id": "j2", "text": "A map"}])
    subprocess.run(command("add", "-"), input=array.encode(), check=True)
    run("upsert", write("again.jsonl", [array]))
    assert found(run) == ["b-1", "t-1", "x", "y", "j1", "j2"]


@pytest.mark.parametrize("verb", ["add", "upsert", "sync"])
def test_files_of_a_folder_that_are_not_read_are_counted(run: Run, encoder: str, verb: str) -> None:
    Path("notes/deep").mkdir(parents=True)
    for name in ("a.md", "b.rst", "deep/c.html", "d.csv", ".hidden.html", "LICENSE"):
        Path("notes", name).write_text("A rope to climb with", encoding="utf-8")
    said = run(verb, "notes", "--encoder", encoder).stderr
    assert "3 files were left out (.csv, .html, no ending); of a folder .txt, .md, .markdown, .rst are read" in said
    assert run("upsert", "notes", "--json").stderr == ""
    assert found(run) == ["a.md", "b.rst"]


def test_a_table_on_stdin_without_its_format_is_told_of_the_option(run: Run, encoder: str) -> None:
    said = run("add", "-", "--encoder", encoder, stdin=TABS, code=1).stderr
    first, kept = said.splitlines()
    assert first.endswith("read as JSONL, name another format with --format (and 2 more lines like it)")
    assert kept.startswith("nothing was written")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["add", "report.pdf"], "report.pdf: unknown file type; use .jsonl, .csv, .tsv, .parquet, .txt, .md or .rst"),
        (["add", "pictures"], "pictures: no documents found: there are no .txt, .md or .rst files in this folder"),
        (["add", "missing.jsonl"], "missing.jsonl: no such file or folder; check the path"),
        (["add", "docs.jsonl", "--index", "docs.jsonl"], "docs.jsonl is a file; choose a new or an empty folder"),
        (["search", "boots", "--index", "docs.jsonl"], "docs.jsonl is a file; an index is a folder"),
        (["search", "boots", "--index", "nowhere"], "no index in nowhere: it has no store.db; create one or check"),
        (
            ["search", "boots", "--index", "127.0.0.1:7799"],
            "no index in 127.0.0.1:7799; the address of a server begins",
        ),
        (["search", "boots", "--index", "http://127.0.0.1:9"], "no incdsi server answers at http://127.0.0.1:9 ("),
        (
            ["search", "boots", "--index", "http://"],
            "'http://' has no host; an address looks like http://127.0.0.1:7799",
        ),
    ],
    ids=lambda given: " ".join(given) if isinstance(given, list) else "",
)
def test_a_wrong_place_is_one_sentence(run: Run, encoder: str, arguments: list[str], sentence: str) -> None:
    write("docs.jsonl", DOCUMENTS)
    Path("report.pdf").write_bytes(b"%PDF-1.4\x00\x01")
    Path("pictures").mkdir()
    Path("pictures/boots.png").write_bytes(b"\x89PNG")
    more = ["--encoder", encoder] if arguments[0] == "add" else []
    said = run(*arguments, *more, code=1).stderr
    assert said.startswith(sentence)
    assert len(said.splitlines()) == 1
    assert not Path("shop").exists()


def test_an_unknown_encoder_is_one_sentence_and_leaves_nothing(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    said = run("add", write("docs.jsonl", DOCUMENTS), "--encoder", "no-such-model", code=1).stderr.splitlines()
    assert said[-1].startswith("no model 'no-such-model': not a folder, not in the local cache")
    assert not Path("shop").exists()


def test_another_server_on_the_port_and_another_path_are_one_sentence(run: Run, shop: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        said = run("serve", "--port", port, code=1).stderr
    assert said.splitlines()[-1] == f"cannot listen on 127.0.0.1:{port}: Address already in use"


def test_front_matter_is_no_text(run: Run, encoder: str) -> None:
    Path("notes").mkdir()
    Path("notes/a.md").write_text("---\ntitle: Boots\ntags: [new, red]\nprice: 19.9\n---\nDry feet in any river.\n")
    run("add", "notes", "--encoder", encoder)
    got = json.loads(run("get", "a.md", "--json").stdout)
    assert (got["title"], got["text"]) == ("Boots", "Dry feet in any river.\n")
    assert got["metadata"] == {"tags": ["new", "red"], "price": 19.9}
    assert json.loads(run("search", "tags", "--mode", "lexical", "--json").stdout)["hits"] == []


def test_a_word_is_found_by_its_other_forms(run: Run, encoder: str) -> None:
    run("add", write("docs.jsonl", [{"id": "a", "text": "Boots for a long hike."}]), "--encoder", encoder)
    assert [hit["id"] for hit in json.loads(run("search", "hiking", "--mode", "lexical", "--json").stdout)["hits"]] == [
        "a"
    ]


def test_a_notebook_cell_can_be_run_again(tmp_path: Path) -> None:
    for _ in range(3):
        index = Index.open(tmp_path / "shop", TOY, create=True)  # the handle of before is never closed
        index.upsert({"id": "boots", "text": "Waterproof boots."}, queries=["dry feet"])
        index.upsert_many([{"id": "tent", "text": "A tent."}])
        index.teach("gift for dad", "boots")
        assert [hit.document_id for hit in index.search("gift for dad", k=1)] == ["boots"]
        assert len(index) == 2
    with pytest.raises(DuplicateDocument, match="update or upsert it instead"):
        index.add({"id": "boots", "text": "Waterproof boots."})


def test_a_single_document_where_a_list_belongs_is_one_sentence(tmp_path: Path) -> None:
    with Index.create(tmp_path / "shop", TOY) as index:
        for one in ({"id": "a", "text": "x"}, Document(id="a", text="x"), "a"):
            for verb in (index.add_many, index.upsert_many):
                with pytest.raises(InvalidDocument, match="expected a list of documents, found a single"):
                    verb(one)  # type: ignore[arg-type]
