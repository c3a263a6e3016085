"""Tables as people have them: named columns, kinds, stdin, Excel's CSV, Parquet; one error for one cause."""

from __future__ import annotations

import builtins
import csv
import io
import json
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Run

PRODUCTS = "sku,name,description,price,stock,new,made\n" + "".join(
    f"BT-{number:03},Boots {number},for a deep river,{number}.90,{number},{number % 2 == 1},2024-05-0{number}\n"
    for number in range(1, 6)
)
FIELDS = ("--id-field", "sku", "--title-field", "name", "--text-field", "description")


def exported(run: Run) -> dict[str, dict[str, Any]]:
    return {row["id"]: row for row in map(json.loads, run("export").stdout.splitlines())}


def found(run: Run, where: dict[str, object]) -> list[str]:
    hits = json.loads(run("search", "deep river", "-k", 99, "--where", json.dumps(where), "--json").stdout)["hits"]
    return sorted(hit["id"] for hit in hits)


def test_columns_of_other_names_are_named_and_the_rest_can_be_filtered_on(run: Run, encoder: str) -> None:
    Path("products.csv").write_text(PRODUCTS)
    run("add", "products.csv", *FIELDS, "--encoder", encoder)
    one = exported(run)["BT-003"]
    assert (one["title"], one["text"]) == ("Boots 3", "for a deep river")
    assert one["metadata"] == {"price": 3.9, "stock": 3, "new": True, "made": "2024-05-03"}
    assert found(run, {"price": {"lt": 3}, "new": True}) == ["BT-001"]
    assert found(run, {"made": {"gte": "2024-05-04"}}) == ["BT-004", "BT-005"]


def test_update_and_upsert_take_the_same_names(run: Run, encoder: str) -> None:
    Path("products.csv").write_text(PRODUCTS)
    run("upsert", "products.csv", *FIELDS, "--encoder", encoder)
    run("update", "-", *FIELDS, "--format", "csv", stdin="sku,name,description\nBT-001,New,text\n")
    assert exported(run)["BT-001"]["title"] == "New"


def test_several_text_fields_are_put_below_each_other(run: Run, encoder: str) -> None:
    Path("d.tsv").write_text("id\ttitle\tbody\tnotes\na\tT\tone\ttwo\nb\tT\tone\t\n")
    run("add", "d.tsv", "--text-field", "title", "--text-field", "body", "--text-field", "notes", "--encoder", encoder)
    assert [(row["title"], row["text"]) for row in exported(run).values()] == [("", "T\none\ntwo"), ("", "T\none")]


def test_a_missing_column_is_one_error_with_the_columns_that_are_there(run: Run) -> None:
    Path("products.csv").write_text(PRODUCTS * 1)
    columns = "the columns are sku, name, description, price, stock, new, made"
    for options in ((), ("--skip-bad",), ("--no-types",)):
        said = run("add", "products.csv", *options, code=1).stderr
        advice = "say which to use with --id-field and --text-field"
        assert said == f"products.csv: no column 'id' or 'text'; {columns}; {advice}\n"
    said = run("add", "products.csv", "--id-field", "SKU", "--text-field", "name", code=1).stderr
    assert said == f"products.csv: no column 'SKU'; {columns}\n"
    assert not Path("shop").exists()


def test_what_many_lines_share_is_said_once(run: Run) -> None:
    Path("d.jsonl").write_text('{"sku": "a", "name": "x"}\n' * 500)
    said = run("add", "d.jsonl", code=1).stderr
    assert said.splitlines()[0] == (
        "d.jsonl:1: field 'id' is missing or empty, found only 'sku', 'name'; name another with --id-field "
        "(and 499 more lines like it)"
    )
    assert len(said.splitlines()) == 2
    said = run("add", "d.jsonl", "--id-field", "sku", "--skip-bad", code=1).stderr
    assert "d.jsonl:1: no text, title or queries, found only 'sku', 'name'; name the fields to search" in said
    assert "(and 499 more lines like it)" in said


def test_without_types_every_cell_is_text_and_a_pipe_is_not_copied(run: Run, encoder: str) -> None:
    run("add", "-", "--format", "csv", "--no-types", *FIELDS, "--encoder", encoder, stdin=PRODUCTS)
    assert exported(run)["BT-001"]["metadata"] == {"price": "1.90", "stock": "1", "new": "True", "made": "2024-05-01"}


def test_standard_input_is_read_in_the_format_that_is_named(run: Run, encoder: str) -> None:
    run("add", "-", "--format", "csv", *FIELDS, "--encoder", encoder, stdin=PRODUCTS)
    assert exported(run)["BT-001"]["metadata"]["price"] == 1.9
    run("add", "-", "--format", "tsv", stdin='id\ttext\nt1\t6" pipe\n')
    run("add", "-", "--format", "jsonl", stdin='{"id": "j1", "text": "x"}\n')
    assert exported(run)["t1"]["text"] == '6" pipe'


def test_a_format_is_for_files_that_do_not_tell_theirs_and_not_for_texts(run: Run, encoder: str) -> None:
    Path("products.txt").write_text(PRODUCTS)
    run("add", "products.txt", "--format", "csv", *FIELDS, "--encoder", encoder)
    assert len(exported(run)) == 5
    Path("notes").mkdir()
    said = run("add", "notes", "--format", "csv", code=1).stderr
    assert said == "notes: text files have no fields and no format to name; leave these options out\n"


def test_excels_csv_with_a_mark_and_semicolons_is_read(run: Run, encoder: str) -> None:
    Path("e.csv").write_bytes(
        'id;text;price;note\r\na;a; b;5;"x;y"\r\n'.replace("a; b", "river, deep").encode("utf-8-sig")
    )
    run("add", "e.csv", "--encoder", encoder)
    assert exported(run)["a"]["text"] == "river, deep"
    assert exported(run)["a"]["metadata"] == {"price": 5, "note": "x;y"}


def test_windows_1252_is_one_error_that_says_what_to_do(run: Run) -> None:
    rows = "".join(f"d{number},Größe {number}\n" for number in range(50))
    Path("w.csv").write_bytes(f"id,text\n{rows}".encode("cp1252"))
    said = run("add", "w.csv", code=1).stderr.splitlines()
    assert said[0].startswith("w.csv:2: not UTF-8: byte 0xf6; save the file as UTF-8 (Excel: ")
    assert said[0].endswith("(and 49 more lines like it)")


def test_ten_thousand_rows_with_tags_and_numbers(run: Run, encoder: str) -> None:
    """Read only: adding as many takes longer than a quick test may."""
    from incdsi.readers import Layout, read_documents

    text = io.StringIO()
    table = csv.writer(text)
    table.writerow(["sku", "name", "price", "zip", "sold"])
    for number in range(10_000):
        table.writerow([f"P{number}", f"Product {number}", f"{number / 4:.2f}", f"{number:05}", number % 3 == 0])
    Path("p.csv").write_text(text.getvalue())
    rows = list(read_documents("p.csv", layout=Layout(id="sku", text=("name",))))
    assert len(rows) == 10_000
    assert dict(rows[7][0].metadata) == {"price": 1.75, "zip": "00007", "sold": False}


def parquet(path: str, **columns: list[Any]) -> None:
    import pyarrow
    import pyarrow.parquet

    pyarrow.parquet.write_table(pyarrow.table(columns), path)


def test_parquet_tells_its_types_itself(run: Run, encoder: str) -> None:
    parquet(
        "d.parquet",
        id=[1, 2],
        text=["deep river", "sea"],
        tags=[["red", "new"], None],
        made=[date(2024, 5, 1), None],
        at=[datetime(2024, 5, 1, 12, 30), None],
        price=[Decimal("1.50"), Decimal("2.00")],
        weight=[0.5, float("nan")],
        queries=[["how deep"], []],
    )
    run("add", "d.parquet", "--encoder", encoder)
    rows = exported(run)
    assert rows["1"]["metadata"] == {
        "tags": ["red", "new"],
        "made": "2024-05-01",
        "at": "2024-05-01T12:30:00",
        "price": 1.5,
        "weight": 0.5,
    }
    assert rows["1"]["queries"] == ["how deep"]
    assert rows["2"]["metadata"] == {"price": 2}
    assert found(run, {"tags": {"contains": "red"}}) == ["1"]
    run("upsert", "-", "--format", "parquet", stdin=Path("d.parquet").read_bytes())


def test_a_parquet_file_that_is_none_and_one_without_pyarrow_are_one_sentence(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("d.parquet").write_bytes(b"PAR1 and no more")
    said = run("add", "d.parquet", code=1).stderr
    assert said.startswith("d.parquet: cannot be read as Parquet: ")
    assert len(said.splitlines()) == 1
    parquet("e.parquet", sku=["a"], name=["x"])
    said = run("add", "e.parquet", code=1).stderr
    assert said.startswith("e.parquet: no column 'id' or 'text'; the columns are sku, name;")
    parquet("n.parquet", id=["a"], text=["x"], size=[{"width": 1}])
    said = run("add", "n.parquet", code=1).stderr
    assert "n.parquet:1: document 'a': expected metadata 'size' to be a string" in said

    imported = builtins.__import__

    def without(name: str, *rest: Any, **more: Any) -> Any:
        if name.startswith("pyarrow"):
            raise ImportError(name=name)
        return imported(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    said = run("add", "d.parquet", code=1).stderr
    assert "reading Parquet needs pyarrow; install it with: pip install 'incdsi[parquet]'" in said


def test_a_file_of_other_bytes_is_one_sentence_whatever_bytes_they_are(run: Run) -> None:
    Path("junk.jsonl").write_bytes(b"\x80a\n\x81b\n\xffc\n")
    said, *_ = run("add", "junk.jsonl", code=1).stderr.splitlines()
    assert "not UTF-8: byte 0x80" in said
    assert said.endswith("(and 2 more lines like it)")
