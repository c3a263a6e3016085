"""Every reader of files, on files that are almost right: documents that are in the file, or a sentence of ours."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from incdsi.documents import Document
from incdsi.errors import IncDSIError, InvalidFile
from incdsi.readers import read_documents, read_queries
from incdsi_lab.data import read_beir, read_jsonl, read_natural_questions, read_released
from tests.fuzz.damage import Target, damaged, few, many, only_ours
from tests.lab import data_samples

ROWS: list[dict[str, Any]] = [
    {"id": "a", "title": "Boots", "text": 'They "survive" a river.', "lang": "en", "n": 1, "queries": ["wet feet"]},
    {"id": 7, "text": "naïve 日本", "metadata": {"f": 0.5, "none": None}, "taught": ["x y"]},
    {"_id": "c", "title": None, "text": "# C\n- item", "b": True},
]
JSONL = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in ROWS).encode()
CSV = b'id,title,text,n,queries\na,Boots,"They ""survive""\na river",19.90,"[""q""]"\nb,,x,5.00,\n'
TSV = b'id\ttitle\ttext\tn\na\t"Boots\tThey survive\t1\nb\t\tx\t2\n'
QUERIES = b'{"id": "q", "text": "one", "doc_id": "a", "split": "train"}\n{"text": "two", "document_id": 7}\n'
QUERIES_TSV = b'text\tdoc_id\n"one\ta\ntwo\t7\n'
MATTER = b"---\ntitle: Boots\ntags: [a, 'b']\nd: 2024-05-01\nn:\n  m: 1\n---\n# x\n"
TOML = b'+++\ntitle = "Boots"\nd = 2024-05-01\n+++\n# x\n'
MARKDOWN = b"# Boots ##\n\nThey [survive](https://a.b) a river.\n```\ncode\n"
KINDS = b"id;text;new;made;at\na;x;true;2024-05-01;2024-05-01 12:30\nb;y;FALSE;2024-06-01;2024-05-01T12:30:05\n"


def parquet() -> bytes:
    import pyarrow
    import pyarrow.parquet

    out = io.BytesIO()
    pyarrow.parquet.write_table(
        pyarrow.table({"id": ["a", "b"], "text": ["x", None], "n": [1, 2], "l": [["p"], []]}), out
    )
    return out.getvalue()


NAMES = {
    "d.json": b"[" + b",".join(JSONL.splitlines()) + b"]",
    "y.md": MATTER,
    "t.md": TOML,
    "k.csv": KINDS,
    "d.parquet": parquet(),
    "d.jsonl": JSONL,
    "d.csv": CSV,
    "d.tsv": TSV,
    "d.md": MARKDOWN,
    "d.jsonl.gz": JSONL,
}


def any_documents(data: st.DataObject, folder: Path) -> None:
    name = data.draw(st.sampled_from(sorted(NAMES)))
    (folder / name).write_bytes(data.draw(damaged(NAMES[name])))
    refused: list[IncDSIError] = []
    kept: list[Any] = []
    with only_ours():
        kept = list(read_documents(folder / name, on_error=refused.append))
    for document, queries in kept:
        assert document.id
        json.dumps([document.id, document.title, document.text, dict(document.metadata), queries], allow_nan=False)
        "".join([document.id, document.title, document.text, *document.metadata, *queries]).encode()
    assert all(str(error) for error in refused)
    with only_ours():
        assert list(read_documents(folder / name)) == kept
        assert refused == []


def jsonl_documents_are_those_of_the_lines(data: st.DataObject, folder: Path) -> None:
    content = data.draw(damaged(JSONL))
    (folder / "d.jsonl").write_bytes(content)
    found: list[Document] = []
    with only_ours():
        found = [document for document, _ in read_documents(folder / "d.jsonl", on_error=lambda error: None)]
    if content.startswith(b"\x1f\x8b"):
        return
    rows = []
    for line in content.removeprefix(b"\xef\xbb\xbf").split(b"\n"):
        try:
            rows.append(json.loads(line))
        except (ValueError, RecursionError):
            rows.append(None)
    said = [(str(row.get("id") if row.get("id") is not None else row.get("_id")), row.get("text") or "")
            for row in rows if isinstance(row, dict)]  # fmt: skip
    assert all((document.id, document.text) in said for document in found)


def any_queries(data: st.DataObject, folder: Path) -> None:
    name, sound = data.draw(st.sampled_from([("q.jsonl", QUERIES), ("q.tsv", QUERIES_TSV), ("q.csv", QUERIES_TSV)]))
    (folder / name).write_bytes(data.draw(damaged(sound)))
    with only_ours():
        for query in read_queries(folder / name, on_error=lambda error: None):
            assert query.text.strip()
            (query.text + query.document_id).encode()
    with only_ours():
        list(read_queries(folder / name, split="train"))


def a_folder_of_texts(data: st.DataObject, folder: Path) -> None:
    inside = folder / "texts"
    inside.mkdir(exist_ok=True)
    for file in inside.iterdir():
        file.unlink()
    letters = st.characters(codec="utf-8", exclude_characters="/\0")
    for name in data.draw(st.lists(st.text(letters, min_size=1, max_size=12), max_size=3)):
        (inside / f"{name}.md").write_bytes(data.draw(damaged(MARKDOWN)))
    with only_ours():
        for document, _ in read_documents(inside, on_error=lambda error: None):
            assert (inside / document.id).read_bytes().decode("utf-8-sig") == document.text


def one_file_damaged(make: Callable[[Path], Path], *readers: Callable[[Path], object]) -> Target:
    """A folder of several files, one of which is damaged."""

    def target(data: st.DataObject, folder: Path) -> None:
        inside = folder / make.__name__
        if not inside.exists():
            make(inside)
        files = sorted(path for path in inside.rglob("*") if path.is_file())
        chosen = data.draw(st.sampled_from(files))
        sound = chosen.read_bytes()
        try:
            chosen.write_bytes(data.draw(damaged(sound)))
            for reader in readers:
                with only_ours():
                    reader(inside)
        finally:
            chosen.write_bytes(sound)

    target.__name__ = make.__name__
    return target


def beir_folder(folder: Path) -> Path:
    return data_samples.beir(folder)


TARGETS: list[Target] = [
    any_documents,
    jsonl_documents_are_those_of_the_lines,
    any_queries,
    a_folder_of_texts,
    one_file_damaged(data_samples.ours, read_jsonl),
    one_file_damaged(
        beir_folder,
        read_beir,
        lambda folder: list(read_documents(folder, on_error=lambda error: None)),
        lambda folder: "".join(query.text + query.document_id for query in read_queries(folder)).encode(),
    ),
    one_file_damaged(data_samples.natural_questions, read_natural_questions),
    one_file_damaged(data_samples.released, read_released),
]


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.__name__)
@few
@given(data=st.data())
def test_a_damaged_file_is_read_or_refused(target: Target, tmp_path: Path, data: st.DataObject) -> None:
    target(data, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.__name__)
@many
@given(data=st.data())
def test_very_many_damaged_files_are_read_or_refused(target: Target, tmp_path: Path, data: st.DataObject) -> None:
    target(data, tmp_path)


def test_a_released_array_nested_too_deeply_is_refused(tmp_path: Path) -> None:
    folder = data_samples.released(tmp_path / "released", array=True)
    next(folder.rglob("trainqueries.json")).write_text("[" * 200_000)
    with pytest.raises(InvalidFile, match="nested too deeply"):
        read_released(folder)


TEXT = st.text(st.characters(codec="utf-8"), max_size=20)
IDS = TEXT.filter(bool)
FIELDS = st.dictionaries(
    st.sampled_from(["lang", "n", " odd name", "über"]),
    TEXT
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.booleans()
    | st.none(),
)


@few
@given(rows=st.lists(st.tuples(IDS, TEXT, TEXT, FIELDS), min_size=1, max_size=4, unique_by=lambda row: row[0]))
def test_what_is_written_as_jsonl_is_read_back(
    tmp_path: Path, rows: list[tuple[str, str, str, dict[str, Any]]]
) -> None:
    path = tmp_path / "d.jsonl"
    records = [{"id": i, "title": title, "text": f"x{text}", **fields} for i, title, text, fields in rows]
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    expected = [Document(id=i, title=title, text=f"x{text}", metadata=fields) for i, title, text, fields in rows]
    assert [document for document, _ in read_documents(path)] == expected


@few
@given(rows=st.lists(st.tuples(IDS, TEXT, TEXT), min_size=1, max_size=4, unique_by=lambda row: row[0]))
def test_what_is_written_as_csv_is_read_back(tmp_path: Path, rows: list[tuple[str, str, str]]) -> None:
    written = io.StringIO(newline="")
    csv.writer(written, quoting=csv.QUOTE_ALL).writerows(
        [("id", "text", "note"), *((i, f"x{t}", f"n{n}") for i, t, n in rows)]
    )
    path = tmp_path / "d.csv"
    path.write_bytes(written.getvalue().encode())
    expected = [Document(id=i, text=f"x{text}", metadata={"note": f"n{note}"}) for i, text, note in rows]
    assert [document for document, _ in read_documents(path)] == expected


CELLS = st.text(st.characters(codec="utf-8", exclude_characters="\t\r\n"), max_size=20)


@few
@given(rows=st.lists(st.tuples(CELLS.filter(bool), CELLS), min_size=1, max_size=4, unique_by=lambda row: row[0]))
def test_what_is_written_as_tsv_is_read_back(tmp_path: Path, rows: list[tuple[str, str]]) -> None:
    path = tmp_path / "d.tsv"
    path.write_text("id\ttext\n" + "".join(f"{i}\tx{text}\n" for i, text in rows), encoding="utf-8")
    assert [document for document, _ in read_documents(path)] == [Document(id=i, text=f"x{text}") for i, text in rows]
