"""add, update, upsert, delete, teach: what they do, say and refuse."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from incdsi.documents import Document
from incdsi.solver import Status
from incdsi.store import Store
from incdsi.text.generators import Spans
from tests.cli.conftest import DOCUMENTS, Run, write


def ids(run: Run) -> set[str]:
    return {json.loads(line)["id"] for line in run("export").stdout.splitlines()}


def test_add_makes_the_index_and_says_milliseconds(run: Run, encoder: str) -> None:
    said = run("add", write("docs.jsonl", DOCUMENTS), "--encoder", encoder).stdout
    assert said.startswith("added 3 documents in ")
    assert " ms each (generate " in said
    assert ids(run) == {"boots", "sea", "mountain"}


def test_add_prints_one_json_object_and_nothing_else(run: Run, encoder: str) -> None:
    result = run("add", write("docs.jsonl", DOCUMENTS), "--encoder", encoder, "--json")
    told = json.loads(result.stdout)
    assert told["added"] == 3
    assert told["skipped"] == []
    assert not told["tuned"]
    assert [one["id"] for one in told["documents"]] == ["boots", "sea", "mountain"]
    assert set(told["milliseconds"]) == {"generate", "encode", "constrain", "solve", "commit", "append"}
    assert result.stderr == ""


def test_add_says_what_conflicts(run: Run, encoder: str) -> None:
    twins = [
        {"id": "a", "text": "the sea is deep", "queries": ["who won the sea", "where is the river"]},
        {"id": "b", "text": "the sea is deep", "queries": ["who won the sea", "where is the river"]},
    ]
    run("add", write("a.jsonl", twins[:1]), "--encoder", encoder)
    told = json.loads(run("add", write("b.jsonl", twins[1:]), "--json").stdout)
    assert told["documents"][0]["conflicts"] == ["a"]
    run("delete", "b")
    said = run("add", "b.jsonl").stdout
    assert "1 of 1 competes with others for a query, as near-duplicates do. All are in the index" in said
    assert "competes with" in said
    assert "compromised: placed as well as can be, but for some query it and another" in " ".join(said.split())


def test_many_that_compete_are_a_sentence_and_the_ten_that_lose_most(run: Run, encoder: str) -> None:
    some = [{"id": f"p-{n}", "text": f"the sea is deep {n}", "queries": ["who won the sea"]} for n in range(30)]
    told = json.loads(run("add", write("a.jsonl", some), "--encoder", encoder, "--json").stdout)["documents"]
    found = sorted((one for one in told if one["conflicts"]), key=lambda one: one["margin"])
    assert len(found) > 10
    run("delete", *(one["id"] for one in some))
    said = run("add", "a.jsonl").stdout
    assert f"{len(found)} of 30 compete with others for a query" in said
    assert "The 10 that lose most (--json has all):" in said
    shown = [line.split()[0] for line in said.splitlines() if line.startswith("p-")]
    assert (len(shown), shown[0]) == (10, found[0]["id"])


def test_add_reads_stdin_and_a_folder(run: Run, encoder: str) -> None:
    run("add", "-", "--encoder", encoder, stdin=json.dumps(DOCUMENTS[0]) + "\n")
    Path("notes/deep").mkdir(parents=True)
    Path("notes/deep/river.md").write_text("# River\nflows to the sea", encoding="utf-8")
    run("add", "notes")
    assert ids(run) == {"boots", "deep/river.md"}


def test_queries_of_a_file_come_to_their_documents(run: Run, encoder: str) -> None:
    asked = write("log.jsonl", [{"text": "dry feet", "document_id": "boots"}])
    run("add", write("docs.jsonl", DOCUMENTS), "--encoder", encoder, "--queries", asked)
    assert json.loads(run("get", "boots", "--json").stdout)["queries"] == ["dry feet"]
    stray = write("stray.jsonl", [{"text": "dry feet", "document_id": "ghost"}])
    more = write("more.jsonl", [{"id": "new", "text": "word"}])
    said = run("add", more, "--queries", stray, code=1).stderr
    assert "stray.jsonl: has queries for 'ghost', which is not in the same source" in said
    assert "new" not in ids(run)


BAD = [
    ("empty.jsonl", [], "empty.jsonl: no documents found"),
    (
        "column.jsonl",
        [{"identity": "a", "text": "x"}],
        "column.jsonl:1: field 'id' is missing or empty, found only 'identity'",
    ),
    ("twice.jsonl", [DOCUMENTS[0], DOCUMENTS[0]], "twice.jsonl:2: duplicate id 'boots'"),
    ("broken.jsonl", [DOCUMENTS[0], "{\n"], "broken.jsonl:2: not valid JSON"),
    ("docs.xml", ["<a/>"], "docs.xml: unknown file type; use .jsonl, .csv, .tsv, .parquet"),
    ("wrong.csv", ["id,text\n", "a,b,c\n"], "wrong.csv:2: expected 2 columns (id, text), found 3"),
]


@pytest.mark.parametrize(("name", "rows", "sentence"), BAD, ids=[name for name, _, _ in BAD])
def test_a_bad_file_is_refused_whole_and_makes_no_index(run: Run, encoder: str, name, rows, sentence) -> None:
    result = run("add", write(name, rows), "--encoder", encoder, code=1)
    assert sentence in result.stderr
    assert result.stdout == ""
    assert not Path("shop").exists()


def test_every_bad_line_is_named_and_skip_bad_takes_the_rest(run: Run, shop: Path) -> None:
    mixed = write("mixed.jsonl", ["no json\n", {"id": "new", "text": "word"}, {"text": "x"}, DOCUMENTS[0]])
    refused = run("add", mixed, code=1).stderr.splitlines()
    assert [line.split(": ")[0] for line in refused[:2]] == ["mixed.jsonl:1", "mixed.jsonl:3"]
    assert refused[-1] == "nothing was written; fix this, or leave it out with --skip-bad"
    assert ids(run) == {"boots", "sea", "mountain"}
    told = json.loads(run("add", mixed, "--skip-bad", "--json").stdout)
    assert told["added"] == 1
    assert [sentence.split(": ")[0] for sentence in told["skipped"][:2]] == ["mixed.jsonl:1", "mixed.jsonl:3"]
    assert told["skipped"][2].startswith("document 'boots' is already in the index")
    assert "new" in ids(run)


def test_only_bad_lines_are_refused_even_with_skip_bad(run: Run, encoder: str) -> None:
    said = run("add", write("bad.jsonl", ["x\n"]), "--encoder", encoder, "--skip-bad", code=1).stderr
    assert said.startswith("no good documents found\nbad.jsonl:1: ")
    assert not Path("shop").exists()


def test_many_bad_lines_are_counted(run: Run, encoder: str) -> None:
    said = run("add", write("bad.jsonl", [f"{' ' * n}x\n" for n in range(50)]), "--encoder", encoder, code=1).stderr
    assert len(said.splitlines()) == 22
    assert "... and 30 more like these" in said


def test_ids_that_are_there_are_all_refused(run: Run, shop: Path) -> None:
    said = run("add", "docs.jsonl", code=1).stderr
    assert [line for line in said.splitlines() if "document 'sea' is already in the index" in line]
    assert said.count("in the index; update or upsert it instead") == 3


def test_batches_before_a_refusal_are_kept_and_it_says_so(run: Run, encoder: str) -> None:
    rows = [{"id": f"d{number}", "text": "the sea"} for number in range(4)]
    mixed = write("docs.jsonl", [*rows, "broken\n"])
    said = run("add", mixed, "--encoder", encoder, "--batch", 2, code=1).stderr
    assert "docs.jsonl:5: " in said
    assert "the 4 documents before are kept" in said
    assert ids(run) == {"d0", "d1", "d2", "d3"}


@pytest.mark.parametrize("megabytes", [1, pytest.param(10, marks=pytest.mark.slow)])  # ten have 20,000 passages
def test_a_line_of_megabytes_is_a_document_like_others(run: Run, encoder: str, megabytes: int) -> None:
    long = {"id": "long", "text": "the river flows " * (65_000 * megabytes)}
    path = write("long.jsonl", [long, DOCUMENTS[1]])
    assert path.stat().st_size > 1_000_000 * megabytes
    run("add", path, "--encoder", encoder)
    said = run("search", "river", "--mode", "lexical").stdout
    assert "long" in said
    assert len(said) < 2000


def test_another_encoder_and_another_folder_are_refused(run: Run, shop: Path, encoder: str) -> None:
    Path("busy").mkdir()
    Path("busy/file").touch()
    assert "busy is not an empty folder" in run("add", "docs.jsonl", "-i", "busy", "--encoder", encoder, code=1).stderr
    assert "no model in busy" in run("add", "docs.jsonl", "-i", "new", "--encoder", "busy", code=1).stderr
    assert not Path("new").exists()


LONG = " ".join(f"The {word} of sentence {word} is deep and long." for word in ("river", "sea", "mountain", "boot"))


def written(id: str) -> list[str]:
    """The queries that were generated for a document."""
    with Store.open("shop", writer=False) as store:
        return [query.text for query in store.get(id).queries if query.generated]


def test_the_generator_is_named_and_remembered(run: Run, encoder: str) -> None:
    documents = [write(f"{id}.jsonl", [{"id": id, "text": LONG.replace("The", f"The {id}")}]) for id in "abc"]
    run("add", documents[0], "--encoder", encoder, "--generator", "spans:2")
    run("add", documents[1])
    run("add", documents[2], "--generator", "spans:3")
    assert [len(written(id)) for id in "abc"] == [2, 2, 3]


def test_a_t5_writes_the_queries_and_is_remembered(run: Run, encoder: str, tiny_t5: Path) -> None:
    first, second = (write(f"{id}.jsonl", [{"id": id, "text": LONG}]) for id in "ab")
    run("add", first, "--encoder", encoder, "--generator", f"t5:{tiny_t5}")
    run("add", second)
    assert written("a")
    assert not set(written("a")) & set(Spans(limit=15)(Document(id="a", text=LONG)))
    assert written("b")
    with Store.open("shop", writer=False) as store:
        assert store.setting("generator")["model"] == str(tiny_t5)


@pytest.mark.parametrize("name", ["spans", "spans:0", "spans:many", "t5:", "gpt:x", ""])
def test_an_unknown_generator_is_refused_and_makes_no_index(run: Run, encoder: str, name: str) -> None:
    said = run("add", write("docs.jsonl", DOCUMENTS), "--encoder", encoder, "--generator", name, code=1).stderr
    assert f"unknown generator {name!r}; write spans:N" in said
    assert not Path("shop").exists()


def test_a_language_is_chosen_once_and_told(run: Run, encoder: str) -> None:
    walks = write("walks.jsonl", [{"id": "one", "text": "Wanderung"}, {"id": "many", "text": "viele Wanderungen"}])
    refused = run("add", walks, "--encoder", encoder, "--language", "german2", code=1).stderr
    assert "no stemmer for the language 'german2'; choose one of: none, arabic," in " ".join(refused.split())
    assert not Path("shop").exists()
    run("add", walks, "--encoder", encoder, "--language", "german")
    assert json.loads(run("info", "--json").stdout)["language"] == "german"
    assert "german" in run("info").stdout
    assert len(json.loads(run("search", "Wanderung", "--mode", "lexical", "--json").stdout)["hits"]) == 2
    other = run("upsert", walks, "--language", "english", code=1).stderr
    assert "is an index in 'german', not 'english'" in " ".join(other.split())
    run("upsert", walks, "--language", "german")


def test_tuning_is_switched_for_good(run: Run, shop: Path) -> None:
    def tuning() -> bool:
        return bool(json.loads(run("info", "--json").stdout)["tuning"])

    assert tuning()
    run("add", write("one.jsonl", [{"id": "one", "text": "word"}]), "--no-tuning")
    assert not tuning()
    run("add", write("two.jsonl", [{"id": "two", "text": "word query"}]))
    assert not tuning()
    run("add", write("three.jsonl", [{"id": "three", "text": "title"}]), "--tuning")
    assert tuning()


def test_the_index_says_when_it_tuned_itself(run: Run, encoder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("incdsi.index.tuning.ENOUGH", 2)
    words = ["river", "mountain", "boots", "sea", "who", "where", "deep", "long"]
    rows = [
        {"id": f"d{n}", "text": f"the {words[n % 8]} {n}", "queries": [f"{w} {n} {words[n % 8]}" for w in "abcd"]}
        for n in range(12)
    ]
    result = run("add", write("docs.jsonl", rows), "--encoder", encoder)
    found = json.loads(run("info", "--json").stdout)
    last = found["last_tuning"]
    before, after = (last[when]["fused"]["hits_at_1"] for when in ("before", "after"))
    assert f"tuned itself on {last['queries']} held-out question" in result.stderr
    assert f"fused H@1 {before:.1f} -> {after:.1f}; switch off with `incdsi tune --no-tuning`" in result.stderr
    assert last["after"] == found["quality"]
    assert f"on {last['queries']} held-out queries" in " ".join(run("info").stdout.split())
    assert "tuned itself" not in run("upsert", write("one.jsonl", [{"id": "one", "text": "word"}])).stderr
    told = json.loads(run("tune", "--json").stdout)
    assert set(told["after"]) == {"learned", "lexical", "fused", "dense"}
    assert re.search(r"H@1 %[^!]*gained in H@1: learned [+-]\d+\.\d, fused [+-]\d+\.\d points", run("tune").stdout)
    assert run("tune", "--no-tuning").stdout == "shop does not tune itself\n"
    assert json.loads(run("info", "--json").stdout)["tuning"] is False


def test_update_replaces_text_and_keeps_queries(run: Run, shop: Path) -> None:
    run("update", "-", stdin=json.dumps({"id": "sea", "text": "where the river flows"}))
    found = json.loads(run("get", "sea", "--json").stdout)
    assert found == {
        "id": "sea",
        "title": "",
        "text": "where the river flows",
        "metadata": {},
        "queries": ["is the sea deep"],
        "taught": [],
    }


def test_update_refuses_unknown_ids_before_it_writes(run: Run, shop: Path) -> None:
    path = write("new.jsonl", [{"id": "sea", "text": "changed"}, {"id": "ghost", "text": "x"}])
    assert "no document 'ghost' in the index; add or upsert it instead" in run("update", path, code=1).stderr
    assert json.loads(run("get", "sea", "--json").stdout)["text"] == "how deep is the sea"
    assert json.loads(run("update", path, "--skip-bad", "--json").stdout)["updated"] == 1
    assert json.loads(run("get", "sea", "--json").stdout)["text"] == "changed"


def test_upsert_updates_and_adds(run: Run, encoder: str) -> None:
    run("upsert", write("docs.jsonl", DOCUMENTS[:2]), "--encoder", encoder)
    path = write("more.jsonl", [{"id": "sea", "text": "changed"}, DOCUMENTS[2]])
    assert json.loads(run("upsert", path, "--json").stdout)["upserted"] == 2
    assert ids(run) == {"boots", "sea", "mountain"}
    assert json.loads(run("get", "sea", "--json").stdout)["text"] == "changed"


def test_delete_by_id_filter_and_stdin(run: Run, shop: Path) -> None:
    assert run("delete", "boots").stdout == "deleted 1 document\n"
    assert json.loads(run("delete", "--where", '{"year": {"gte": 2005}}', "--resolve", "--json").stdout) == {
        "deleted": 1
    }
    run("delete", "-", stdin="mountain\nmountain\n")
    assert ids(run) == set()


def test_delete_refuses_unknown_ids_before_it_deletes(run: Run, shop: Path) -> None:
    said = run("delete", "boots", "ghost", "spectre", code=1).stderr
    assert "no document 'ghost' in the index" in said
    assert "no document 'spectre' in the index" in said
    assert "nothing was deleted" in said
    assert ids(run) == {"boots", "sea", "mountain"}


def test_delete_wants_ids_or_a_filter(run: Run, shop: Path) -> None:
    run("delete", code=2)
    run("delete", "boots", "--where", '{"lang": "en"}', code=2)
    assert "every document" in run("delete", "--where", "{}", code=1).stderr
    for where in ('{"and": []}', '{"not": {"or": []}}'):
        assert "is an empty list" in run("delete", "--where", where, code=1).stderr
    assert ids(run) == {"boots", "sea", "mountain"}


def test_a_taught_query_finds_its_document(run: Run, shop: Path) -> None:
    said = run("teach", "word query", "mountain").stdout
    assert said.startswith("taught mountain in ")
    assert " ".join(said.split()).count(Status.COMPROMISED.value) == 1
    hits = json.loads(run("search", "word query", "--mode", "learned", "--json").stdout)["hits"]
    assert hits[0]["id"] == "mountain"
    told = json.loads(run("teach", "dry feet", "boots", "--json").stdout)
    assert (told["id"], told["explanation"]) == ("boots", Status[told["status"].upper()].value)
    assert "no document 'ghost'" in run("teach", "x", "ghost", code=1).stderr
    assert "at least one character" in run("teach", " ", "boots", code=1).stderr


@pytest.mark.parametrize(("ending", "comma"), [("csv", ","), ("tsv", "\t")])
def test_a_price_in_a_table_can_be_compared(run: Run, encoder: str, ending: str, comma: str) -> None:
    rows = [("id", "text", "price"), ("boots", "hiking boots", "99.50"), ("tent", "a tent", "250.00"), ("map", "x", "")]
    run("add", write(f"docs.{ending}", [comma.join(row) + "\n" for row in rows]), "--encoder", encoder)
    found = json.loads(run("search", "boots", "--where", '{"price": {"lt": 100}}', "--json").stdout)["hits"]
    assert [(hit["id"], hit["metadata"]) for hit in found] == [("boots", {"price": 99.5})]
