"""Readers: every format to the same documents, every bad line to one sentence with its place."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from incdsi.documents import Document, MetadataValue, Query, Taught
from incdsi.errors import DuplicateDocument, IncDSIError, InvalidFile, UnknownDocument
from incdsi.readers import columns, documents, group_queries, read_documents, read_queries, rows

BOOTS = Document(id="boots", title="Boots 🥾", text="They survive\na river.", metadata={"lang": "en", "price": 9})
PLAIN = Document(id="plain", text="Nothing else.")

Write = Callable[[str, str | bytes], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def written(name: str, content: str | bytes) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return written


def lines(*records: Any) -> str:
    return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)


JSONL = lines(
    {
        "id": "boots",
        "title": "Boots 🥾",
        "text": BOOTS.text,
        "lang": "en",
        "price": 9,
        "queries": ["wet feet"],
    },
    {"_id": "plain", "text": "Nothing else.", "title": None, "metadata": {}},
)
CSV = (
    "id,title,text,lang,price,queries\n"
    'boots,Boots 🥾,"They survive\na river.",en,9,"[""wet feet""]"\n'
    "plain,,Nothing else.,,,\n"
)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("d.jsonl", JSONL.encode()),
        ("d.jsonl", b"\xef\xbb\xbf\n" + JSONL.replace("\n", "\r\n").encode()),
        ("d.jsonl.gz", gzip.compress(JSONL.encode())),
        ("d.csv", CSV.encode()),
        ("d.csv", b"\xef\xbb\xbf" + CSV.encode()),
        ("d.csv.gz", gzip.compress(CSV.encode())),
        ("corpus.jsonl", JSONL.encode()),
    ],
)
def test_every_table_gives_the_same_documents_and_queries(write: Write, name: str, content: bytes) -> None:
    found = list(read_documents(write(name, content)))
    assert found[0] == (BOOTS, ["wet feet"])
    assert (found[1][0].id, found[1][0].title, found[1][0].text, found[1][1]) == ("plain", "", "Nothing else.", [])
    assert found[1][0].metadata == {}


def test_a_tab_ends_a_cell_and_a_line_end_a_row_whatever_the_quotes(write: Write) -> None:
    content = 'id\ttext\tqueries\r\na\t"open\t["one"]\r\nb\tsay "yes"\t\r\n\r\nc\t6" pipe\t["a \\"b\\""]'
    found = [(document.id, document.text, queries) for document, queries in read_documents(write("d.tsv", content))]
    assert found == [("a", '"open', ["one"]), ("b", 'say "yes"', []), ("c", '6" pipe', ['a "b"'])]
    asked = list(read_queries(write("q.tsv", 'text\tdoc_id\n"wet\ta\ndry"\tb\n')))
    assert asked == [Query(text='"wet', document_id="a"), Query(text='dry"', document_id="b")]


def test_a_row_of_several_lines_is_named_by_its_first(write: Write) -> None:
    content = 'id,text\na,x\n"a","one\ntwo"\nb,"open\nc,y\n'
    refused: list[IncDSIError] = []
    assert len(list(read_documents(write("d.csv", content), on_error=refused.append))) == 1
    assert [str(error).partition("d.csv:")[2][:2] for error in refused] == ["3:", "5:"]


NUMBERS = {
    "whole": (["7", "-3", "0"], [7, -3, 0]),
    "shortest": (["9.5", "12", "-0.25", "1e-07"], [9.5, 12, -0.25, 1e-07]),
    "as many decimals in each": (["19.90", "5.00", "-0.10", "7"], [19.9, 5.0, -0.1, 7]),
    "with gaps": (["1", "", "3"], [1, None, 3]),
    "64 bits": (["9223372036854775807", "-9223372036854775808"], [2**63 - 1, -(2**63)]),
}
TEXTS = {
    "one word": ["1", "2", "n/a"],
    "a leading zero": ["007", "12"],
    "decimals that differ": ["1.10", "1.9"],
    "an exponent": ["1e5", "1"],
    "a plus": ["+1", "2"],
    "a space": [" 1", "2"],
    "twenty digits": ["12345678901234567890", "1"],
    "sixteen digits after the point": ["0.1234567890123456789", "1"],
    "no number": ["nan", "inf", "-inf"],
    "beyond a float": ["1e999", "1"],
    "minus zero": ["-0", "1"],
    "another script": ["１２", "1"],
    "an underscore": ["1_000", "1"],
    "a list and a word": ['["a"]', "a"],
    "a list of lists": ["[[1]]", "[1]"],
    "a list of more than 64 bits": ["[99999999999999999999]", "[1]"],
    "a list that is no JSON": ["['a']", "[1]"],
    "a list of no number": ["[NaN]", "[1]"],
    "a list of half a character": ['["\\ud800"]', "[1]"],
    "many brackets": ["[" * 5000 + "]" * 5000, "[1]"],
    "yes and no": ["yes", "no"],
    "a boolean and a number": ["true", "1"],
    "a date and a word": ["2024-05-01", "soon"],
    "a date and a time": ["2024-05-01", "2024-05-01T12:00"],
    "times with and without an offset": ["2024-05-01T12:00Z", "2024-05-01T12:00"],
    "no such day": ["2024-02-30", "2024-02-29"],
    "no such hour": ["2024-05-01 24:00", "2024-05-01 23:00"],
    "days and months in another order": ["31/12/2024", "12/31/2024"],
    "a week": ["2024-W05", "2024-W06"],
    "a date without dashes and a code": ["20240501", "AB"],
    "a time before all days": ["0001-01-01T00:00+05:00", "2024-05-01T00:00Z"],
    "digits of another script in a date": ["２０２４-05-01", "2024-05-01"],
    "a point without digits": ["1.", ".5"],
    "many digits": ["1" * 5000, "1"],
    "a comma": ["1,5", "2,0"],
}


KINDS: dict[str, tuple[list[str], list[MetadataValue]]] = {
    "booleans": (["true", "False", "TRUE", ""], [True, False, True, None]),
    "lists": (['["red", 7, null]', "[]", ""], [("red", 7, None), (), None]),
    "dates": (["2024-05-01", "", "0999-12-31"], ["2024-05-01", None, "0999-12-31"]),
    "times": (
        ["2024-05-01 12:30", "2024-05-01T12:30:05", "2024-05-01T12:30:05.25"],
        ["2024-05-01T12:30:00", "2024-05-01T12:30:05", "2024-05-01T12:30:05.250000"],
    ),
    "times with an offset": (
        ["2024-05-01T12:30Z", "2024-05-01 12:30:00+02:00", "2024-05-01 12:30:00 -0730"],
        ["2024-05-01T12:30:00+00:00", "2024-05-01T10:30:00+00:00", "2024-05-01T20:00:00+00:00"],
    ),
}


def column(write: Write, cells: list[str], ending: str = "csv") -> list[MetadataValue]:
    quoted = [f'"{cell.replace(chr(34), 2 * chr(34))}"' if ending == "csv" else cell for cell in cells]
    comma = "," if ending == "csv" else "\t"
    rows = "".join(f"d{place}{comma}x{comma}{cell}\n" for place, cell in enumerate(quoted))
    path = write(f"d.{ending}", f"id{comma}text{comma}n\n{rows}")
    return [document.metadata.get("n") for document, _ in read_documents(path)]


@pytest.mark.parametrize("ending", ["csv", "tsv"])
@pytest.mark.parametrize("kind", NUMBERS)
def test_a_column_of_numbers_is_read_as_numbers(write: Write, kind: str, ending: str) -> None:
    cells, expected = NUMBERS[kind]
    found = column(write, cells, ending)
    assert [(value, type(value)) for value in found] == [(value, type(value)) for value in expected]


@pytest.mark.parametrize("ending", ["csv", "tsv"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_column_of_booleans_dates_or_times_is_read_as_such(write: Write, kind: str, ending: str) -> None:
    cells, expected = KINDS[kind]
    assert column(write, cells, ending) == expected


@pytest.mark.parametrize("kind", TEXTS)
def test_a_column_that_would_not_print_back_stays_text(write: Write, kind: str) -> None:
    assert column(write, TEXTS[kind]) == TEXTS[kind]


def test_an_empty_cell_is_left_out_and_an_empty_column_has_no_kind(write: Write) -> None:
    found = list(read_documents(write("d.csv", "id,text,n,s,e\na,x,1,one,\nb,y,,,\n")))
    assert [dict(document.metadata) for document, _ in found] == [{"n": 1, "s": "one"}, {}]


def test_a_documents_own_columns_stay_text(write: Write) -> None:
    ((document, _),) = read_documents(write("d.csv", "id,title,text\n7,1984,12\n"))
    assert (document.id, document.title, document.text) == ("7", "1984", "12")


def test_a_bad_row_has_no_say_in_what_a_column_is(write: Write) -> None:
    path = write("d.csv", "id,text,n\na,x,1\nb,y,word,too many\nc,z,3\n")
    found = [document.metadata["n"] for document, _ in read_documents(path, on_error=lambda error: None)]
    assert found == [1, 3]


def test_a_table_that_changes_between_the_two_readings_is_refused(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write("d.csv", "id,text,n\na,x,1\n")
    reading = read_documents(path)
    known = columns.column_kinds(rows.read_rows(path), frozenset({"id", "text"}))
    monkeypatch.setattr(documents, "column_kinds", lambda rows, own: known)
    path.write_text("id,text,n\na,x,word\n")
    with pytest.raises(InvalidFile, match=r"d\.csv:2: column 'n' held something else a moment ago, now 'word'"):
        list(reading)


def test_a_pipe_is_copied_to_be_read_twice(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "d.csv")
    writer = threading.Thread(target=lambda: (tmp_path / "d.csv").write_text("id,text,n\na,x,1\n"))
    writer.start()
    ((document, _),) = read_documents(tmp_path / "d.csv")
    writer.join()
    assert document.metadata == {"n": 1}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50, deadline=None)
@given(cells=st.lists(st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**63), 2**63 - 1), min_size=1))
def test_numbers_as_python_prints_them_come_back_equal(write: Write, cells: list[float | int]) -> None:
    found = column(write, [str(cell) for cell in cells])
    assert [(value, type(value)) for value in found] == [(cell, type(cell)) for cell in cells]


def test_standard_input_is_jsonl(monkeypatch: pytest.MonkeyPatch) -> None:
    for content in (JSONL.encode(), gzip.compress(JSONL.encode())):
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BufferedReader(io.BytesIO(content))))
        assert [document.id for document, _ in read_documents("-")] == ["boots", "plain"]


@pytest.mark.parametrize("zipped", [False, True])
def test_a_json_file_is_an_array_or_lines(write: Write, zipped: bool) -> None:
    records = [json.loads(line) for line in JSONL.splitlines()]
    for content in (JSONL, json.dumps(records), "\ufeff \n" + json.dumps(records, indent=2)):
        packed = gzip.compress(content.encode()) if zipped else content.encode()
        found = list(read_documents(write("d.json.gz" if zipped else "d.json", packed)))
        assert [document.id for document, _ in found] == ["boots", "plain"]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b'[{"id": "a", "text": "x"},', r"d\.json: not valid JSON: .* at character 26"),
        (b'[{"id": "a", "text": "\xff"}]', r"d\.json: not UTF-8: byte 0xff"),
        (b'[{"id": "a", "text": "x"}, 3]', r"d\.json:2: expected JSON objects in the array, found a int"),
        (b'[{"text": "x"}]', r"d\.json:1: field 'id' is missing"),
        (b"[" * 100_000, r"d\.json: the JSON is nested too deeply"),
        (b"[]", r"d\.json: no documents found"),
    ],
)
def test_a_bad_array_is_one_sentence(write: Write, content: bytes, sentence: str) -> None:
    with pytest.raises(InvalidFile, match=sentence):
        list(read_documents(write("d.json", content)))


def test_an_array_over_the_limit_is_refused(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "LONGEST", 20)
    with pytest.raises(InvalidFile, match=r"d\.json: an array of more than .* jq -c"):
        list(read_documents(write("d.json", '[{"id": "a", "text": "x"}]')))


def test_a_folder_of_texts(write: Write, tmp_path: Path) -> None:
    write("docs/a.md", "Intro\n\n## The *first* heading ##\nText.")
    write("docs/sub/b.txt", "# not a heading here")
    write("docs/c.markdown", "no heading")
    write("docs/.hidden/x.md", "hidden")
    write("docs/image.png", b"\x89PNG")
    found = [document for document, _ in read_documents(tmp_path / "docs")]
    assert [(d.id, d.title) for d in found] == [
        ("a.md", "The *first* heading"),
        ("c.markdown", "c"),
        ("sub/b.txt", "b"),
    ]
    assert found[0].text.startswith("Intro")


def test_a_restructured_text_is_called_by_its_first_underlined_title(write: Write) -> None:
    text = f".. _bz2:\n\n:mod:`!bz2` --- Support for bzip2 compression\n{'=' * 49}\n\nReads files.\n"
    (document, _) = next(read_documents(write("library/bz2.rst", text).parent))
    assert (document.id, document.text) == ("bz2.rst", text)
    assert document.title == ":mod:`!bz2` --- Support for bzip2 compression"
    assert next(read_documents(write("plain.rst", "no title")))[0].title == "plain"


def test_a_single_text_file_is_one_document(write: Write) -> None:
    ((document, queries),) = read_documents(write("note.md", "# Title\nbody"))
    assert (document.id, document.title, queries) == ("note.md", "Title", [])


def test_beir_gives_documents_their_training_queries_and_keeps_the_test_ones_apart(
    write: Write, tmp_path: Path
) -> None:
    write(
        "beir/corpus.jsonl",
        lines({"_id": "d1", "title": "t", "text": "x", "metadata": {"a": 1}}, {"_id": "d2", "text": "y"}),
    )
    write("beir/queries.jsonl", lines({"_id": "q1", "text": "one"}, {"_id": "q2", "text": "two"}))
    write("beir/qrels/train.tsv", "query-id\tcorpus-id\tscore\nq1\td1\t1\nq1\td2\t0\n")
    write("beir/qrels/test.tsv", "query-id\tcorpus-id\tscore\nq2\td2\t2\n")
    found = list(read_documents(tmp_path / "beir"))
    assert [(document.id, queries) for document, queries in found] == [("d1", ["one"]), ("d2", [])]
    assert found[0][0].metadata == {"a": 1}
    assert list(read_queries(tmp_path / "beir", split="test")) == [Query(text="two", document_id="d2")]
    assert len(list(read_queries(tmp_path / "beir"))) == 2
    write("beir/qrels/test.tsv", "query-id\tcorpus-id\tscore\nq9\td2\t2\n")
    with pytest.raises(InvalidFile, match=r"test\.tsv:2: query id 'q9' is not in queries\.jsonl"):
        list(read_queries(tmp_path / "beir", split="test"))


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        (
            "queries.jsonl",
            b'{"_id": "q1", "text": "half \\ud800"}\n',
            r"queries\.jsonl:1: text is not valid UTF-8",
        ),
        (
            "qrels/train.tsv",
            b"query-id\tcorpus-id\tscore\nq1\td\xff\t1\n",
            r"train\.tsv:2: not UTF-8: byte 0xff",
        ),
    ],
)
def test_a_broken_character_in_a_beir_folder_is_one_sentence(
    write: Write, tmp_path: Path, name: str, content: bytes, sentence: str
) -> None:
    write("beir/corpus.jsonl", lines({"_id": "d1", "text": "x"}))
    write("beir/queries.jsonl", lines({"_id": "q1", "text": "one"}))
    write("beir/qrels/train.tsv", "query-id\tcorpus-id\tscore\nq1\td1\t1\n")
    write(f"beir/{name}", content)
    with pytest.raises(InvalidFile, match=sentence):
        list(read_queries(tmp_path / "beir"))
    refused: list[IncDSIError] = []
    assert list(read_queries(tmp_path / "beir", on_error=refused.append)) == []
    assert refused


def test_whole_numbers_are_ids_and_plain_values_are_metadata(write: Write) -> None:
    record = {"id": 17, "text": "x", "n": 1, "f": 0.5, "b": True, "none": None, "tags": ["red", 1]}
    ((document, _),) = read_documents(write("d.jsonl", lines(record)))
    assert document.id == "17"
    assert document.metadata == {"n": 1, "f": 0.5, "b": True, "none": None, "tags": ("red", 1)}


NESTED = "expected metadata 'k' to be a string, number, .* or a list of these, found {}; flatten it first"
BAD = {
    "not JSON": (b"{oops", "not valid JSON: .* at character 1"),
    "a list": (b"[1]", "expected a JSON object on each line, found a list"),
    "no id": (b'{"text": "x"}', "field 'id' is missing or empty, found only 'text'; name another with --id-field"),
    "an empty id": (b'{"id": "", "text": "x"}', "field 'id' is missing or empty"),
    "a wrong id": (b'{"id": ["a"], "text": "x"}', "expected id to be a string, found list"),
    "a number as text": (b'{"id": "a", "text": 5}', "expected text to be a string, found int"),
    "a list as title": (b'{"id": "a", "text": "x", "title": []}', "expected title to be a string, found list"),
    "not UTF-8": (b'{"id": "a", "text": "\xff"}', "not UTF-8: byte 0xff; save the file as UTF-8"),
    "half a character": (b'{"id": "a", "text": "\\ud800"}', "text is not valid UTF-8: broken character at 0"),
    "NaN": (b'{"id": "a", "text": "x", "n": NaN}', "expected finite numbers, found NaN"),
    "70 bits": (
        b'{"id": "a", "text": "x", "n": 1180591620717411303424}',
        "metadata 'n': expected an integer of at most 64 bits",
    ),
    "infinity": (b'{"id": "a", "text": "x", "n": 1e999}', "expected metadata 'n' to be a finite number, found inf"),
    "nested metadata": (b'{"id": "a", "text": "x", "metadata": {"k": {}}}', NESTED.format("dict")),
    "a list of lists": (b'{"id": "a", "text": "x", "k": [[1]]}', NESTED.format("list in a list")),
    "half a character in a list": (b'{"id": "a", "text": "x", "k": ["\\ud800"]}', "metadata 'k' is not valid UTF-8"),
    "an object beside the text": (b'{"id": "a", "text": "x", "k": {"b": 1}}', NESTED.format("dict")),
    "a field inside and beside metadata": (
        b'{"id": "a", "text": "x", "k": 1, "metadata": {"k": 2}}',
        "'k' is given both inside metadata and beside it; keep one",
    ),
    "metadata as list": (b'{"id": "a", "text": "x", "metadata": [1]}', "expected metadata to be an object"),
    "queries as text": (b'{"id": "a", "text": "x", "queries": "q"}', "queries is not valid JSON: 'q'"),
    "numbers as queries": (b'{"id": "a", "text": "x", "queries": [1]}', r"expected queries to be a list of strings"),
    "no text": (
        b'{"id": "a", "text": " "}',
        "no text, title or queries, found only 'id', 'text'; name .* with --text-field",
    ),
    "deep nesting": (b"[" * 200_000, "nested too deeply"),
}


@pytest.mark.parametrize("kind", BAD)
def test_a_bad_line_is_one_sentence_with_its_place(write: Write, kind: str) -> None:
    content, sentence = BAD[kind]
    path = write("d.jsonl", b'{"id": "first", "text": "x"}\n\n' + content + b'\n{"id": "last", "text": "x"}\n')
    with pytest.raises(InvalidFile, match=sentence) as caught:
        list(read_documents(path))
    assert (caught.value.path, caught.value.line) == (path, 3)
    assert str(caught.value).startswith(f"{path}:3: ")
    assert "\n" not in str(caught.value)
    refused: list[IncDSIError] = []
    assert [document.id for document, _ in read_documents(path, on_error=refused.append)] == ["first", "last"]
    assert len(refused) == 1


def test_a_list_of_taught_queries_is_read_as_such_and_another_value_is_metadata(write: Write) -> None:
    rows = [{"id": "a", "queries": ["q", "t"], "taught": ["t", " "]}, {"id": "b", "text": "x", "taught": "on Monday"}]
    (a, asked), (b, none) = read_documents(write("d.jsonl", lines(*rows)))
    assert [(text, type(text)) for text in asked] == [("q", str), ("t", str), ("t", Taught)]
    assert (dict(a.metadata), dict(b.metadata), none) == ({}, {"taught": "on Monday"}, [])
    with pytest.raises(InvalidFile, match="expected taught to be a list of strings"):
        list(read_documents(write("d.jsonl", lines({"id": "a", "text": "x", "taught": [1]}))))


def test_a_document_with_queries_needs_no_text(write: Write) -> None:
    ((document, queries),) = read_documents(write("d.jsonl", lines({"id": "a", "queries": ["q", " "]})))
    assert (document.content, queries) == ("", ["q"])


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("id,text\na,x,y\n", r"d\.csv:2: expected 2 columns \(id, text\), found 3"),
        ("name,text\na,x\n", r"d\.csv: no column 'id'; the columns are name, text; say which to use with --id-field"),
        ("id,id\na,x\n", r"d\.csv:1: column names must be distinct"),
        ('id,text\na,"x\n', r"d\.csv:2: not valid CSV: unexpected end of data"),
        (b"id,text\na,\xff\n", r"d\.csv:2: not UTF-8: byte 0xff; save the file as UTF-8"),
        (b"id,text,caf\xe9\na,x,y\n", r"d\.csv:1: not UTF-8: byte 0xe9"),
        ("id,text\na,x\n".encode("utf-16"), r"d\.csv: the file is UTF-16; save it as UTF-8"),
        ("id,text,queries\na,x,[1\n", r"d\.csv:2: queries is not valid JSON"),
        ("id,text\n,x\n", r"d\.csv:2: field 'id' is missing or empty"),
        ("id,text\n", r"d\.csv: no documents found"),
    ],
)
def test_a_bad_row_of_a_csv_is_one_sentence(write: Write, content: str | bytes, sentence: str) -> None:
    with pytest.raises(InvalidFile, match=sentence):
        list(read_documents(write("d.csv", content)))


def test_a_duplicate_id_names_both_lines(write: Write) -> None:
    path = write("d.jsonl", lines({"id": "a", "text": "x"}, {"id": "b", "text": "x"}, {"id": "a", "text": "y"}))
    with pytest.raises(DuplicateDocument, match=r"jsonl:3: duplicate id 'a', already used at .*jsonl:1"):
        list(read_documents(path))
    refused: list[IncDSIError] = []
    assert [document.text for document, _ in read_documents(path, on_error=refused.append)] == ["x", "x"]
    assert len(refused) == 1


@pytest.mark.parametrize("name", ["d.jsonl", "d.csv", "d.jsonl.gz"])
def test_an_empty_file_is_refused(write: Write, name: str) -> None:
    for content in (b"", b"\n \n" if "jsonl" in name else b""):
        with pytest.raises(InvalidFile, match="no documents found"):
            list(read_documents(write(name, content)))


def test_a_folder_without_texts_a_missing_path_and_another_ending_are_refused(write: Write, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(InvalidFile, match="empty: no documents found"):
        list(read_documents(tmp_path / "empty"))
    with pytest.raises(InvalidFile, match="no such file or folder"):
        list(read_documents(tmp_path / "nothing.jsonl"))
    with pytest.raises(InvalidFile, match=r"unknown file type; use \.jsonl, \.csv, \.tsv, \.parquet"):
        list(read_documents(write("d.xlsx", b"PK")))


def test_bad_text_files_are_named(write: Write, tmp_path: Path) -> None:
    write("docs/empty.txt", " \n")
    write("docs/latin.txt", b"caf\xe9")
    write("docs/ok.txt", "fine")
    refused: list[IncDSIError] = []
    assert [d.id for d, _ in read_documents(tmp_path / "docs", on_error=refused.append)] == ["ok.txt"]
    assert "empty.txt: the file is empty" in str(refused[0])
    assert "latin.txt: not UTF-8: byte 0xe9" in str(refused[1])


def test_a_line_of_ten_megabytes_is_fine(write: Write) -> None:
    text = "word " * 2_000_000
    ((document, _),) = read_documents(write("d.jsonl", lines({"id": "a", "text": text})))
    assert document.text == text
    ((document, _),) = read_documents(write("d.csv", f"id,text\na,{text}\n"))
    assert len(document.text) == len(text)


def test_a_line_over_the_limit_is_refused_and_can_be_skipped(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "LONGEST", 100)
    path = write("d.jsonl", lines({"id": "a", "text": "x"}, {"id": "b", "text": "y" * 350}, {"id": "c", "text": "z"}))
    with pytest.raises(InvalidFile, match=r"jsonl:2: line longer than .* MiB"):
        list(read_documents(path))
    refused: list[IncDSIError] = []
    assert [document.id for document, _ in read_documents(path, on_error=refused.append)] == ["a", "c"]
    assert rows.LONGEST == 100
    assert len(refused) == 1


def test_the_limit_is_64_mebibytes() -> None:
    assert rows.LONGEST == 64 * 1024 * 1024


def test_a_torn_gzip_is_refused(write: Write) -> None:
    torn = gzip.compress(JSONL.encode() * 50)[:-20]
    with pytest.raises(InvalidFile, match="damaged gzip file"):
        list(read_documents(write("d.jsonl.gz", torn), on_error=lambda error: None))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
@given(content=st.binary(max_size=200), name=st.sampled_from(["d.jsonl", "d.csv", "d.md", "d.jsonl.gz"]))
def test_any_bytes_end_in_documents_or_in_a_sentence(write: Write, content: bytes, name: str) -> None:
    with contextlib.suppress(IncDSIError):
        assert list(read_documents(write(name, content)))


def test_queries_are_spelled_as_they_are_taught(write: Write) -> None:
    expected = [Query(text="one", document_id="a"), Query(text="two", document_id="7")]
    assert (
        list(read_queries(write("q.jsonl", lines({"query": "one", "id": "a"}, {"query": "two", "id": 7})))) == expected
    )
    assert list(read_queries(write("q.tsv", "query\tid\none\ta\ntwo\t7\n"))) == expected
    mixed = {"id": "the query's own", "query": "one", "document_id": "a"}
    assert list(read_queries(write("q.jsonl", lines(mixed)))) == expected[:1]


def test_queries_from_jsonl_and_csv(write: Write) -> None:
    expected = [Query(text="one", document_id="a"), Query(text="two", document_id="7")]
    records = [
        {"id": "q", "text": "one", "doc_id": "a", "split": "train", "answers": ["x"]},
        {"text": "two", "document_id": 7},
    ]
    assert list(read_queries(write("q.jsonl", lines(*records)))) == expected
    assert list(read_queries(write("q.csv", "text,doc_id\none,a\ntwo,7\n"))) == expected
    assert list(read_queries(write("q.jsonl", lines(*records)), split="train")) == expected[:1]


@pytest.mark.parametrize(
    ("record", "sentence"),
    [
        ({"text": "x"}, "field 'document_id' is missing or empty, found only 'text'"),
        ({"doc_id": "a"}, "field 'query' is missing, found only 'doc_id'"),
        ({"query": "x"}, "field 'id' is missing or empty, found only 'query'"),
        ({"text": "x", "id": "a"}, "field 'document_id' is missing or empty, found only 'text', 'id'"),
        ({"doc_id": "a", "text": " "}, "expected a text of at least one character"),
        ({"doc_id": "a", "text": 3}, "expected text to be a string, found int"),
        ("x", "expected a JSON object on each line, found a str"),
    ],
)
def test_a_bad_query_is_one_sentence(write: Write, record: Any, sentence: str) -> None:
    path = write("q.jsonl", lines({"text": "x", "doc_id": "a"}, record))
    with pytest.raises(InvalidFile, match=f"jsonl:2: .*{sentence}"):
        list(read_queries(path))
    refused: list[IncDSIError] = []
    assert len(list(read_queries(path, on_error=refused.append))) == len(refused) == 1


def test_no_query_at_all_is_refused(write: Write) -> None:
    with pytest.raises(InvalidFile, match="no queries found"):
        list(read_queries(write("q.jsonl", "")))


def test_a_query_for_an_unknown_document_is_refused() -> None:
    queries = [
        Query(text="one", document_id="a"),
        Query(text="two", document_id="b"),
        Query(text="three", document_id="a"),
    ]
    with pytest.raises(UnknownDocument) as caught:
        group_queries(queries, {"a"})
    assert str(caught.value) == "query 'two' is for an unknown document 'b'; add the document first"
    refused: list[IncDSIError] = []
    assert group_queries(queries, {"a"}, on_error=refused.append) == {"a": ["one", "three"]}
    assert len(refused) == 1


SHARED = Path(__file__).parents[2] / "shared" / "data" / "squad_plus"


@pytest.mark.skipif(not SHARED.is_dir(), reason="needs ../shared/data/squad_plus")
def test_a_real_set_is_read_whole() -> None:
    documents = {document.id for document, _ in read_documents(SHARED / "docs.jsonl.gz")}
    grouped = group_queries(read_queries(SHARED / "queries.jsonl.gz", split="train"), documents)
    assert (len(documents), sum(map(len, grouped.values()))) == (9748, 29025)
