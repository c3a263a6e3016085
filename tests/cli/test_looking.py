"""search, get, info, export, version."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from importlib import metadata
from pathlib import Path

import pytest

from incdsi.cli.output import as_line
from incdsi.confidence import Confidence
from incdsi.index import Index
from tests.cli.conftest import DOCUMENTS, Run, write


def test_search_shows_rank_score_id_and_text(run: Run, shop: Path) -> None:
    lines = run("search", "how deep is the sea").stdout.splitlines()
    assert lines[0].split() == ["score", "id", "document"]
    assert lines[1].split()[0] == "1"
    assert "sea" in lines[1]
    assert "\x1b[" not in "".join(lines)
    assert max(map(len, lines)) <= 80


def test_search_json_has_every_hit_with_its_document(run: Run, shop: Path) -> None:
    told = json.loads(run("search", "how deep is the sea", "-k", 2, "--json").stdout)
    assert (told["query"], told["mode"], len(told["hits"])) == ("how deep is the sea", "fused", 2)
    assert told["hits"][0]["rank"] == 1
    assert told["hits"][0] | {"score": 0} == {
        "rank": 1,
        "score": 0,
        "confidence": None,
        "id": "sea",
        "title": "",
        "text": "how deep is the sea",
        "metadata": {"lang": "en", "year": 2005},
        "snippet": {"text": "how deep is the sea", "marks": [[0, 3], [4, 8], [9, 11], [12, 15], [16, 19]]},
        "passages": [],
    }


def test_search_says_how_probably_each_hit_is_right_once_the_index_knows(run: Run, shop: Path) -> None:
    said = run("search", "river", "--least", 0.5, code=1).stderr
    assert "cannot tell how confident it is yet" in " ".join(said.split())
    with Index.open(shop) as index, index.engine.changing(None):
        index._session.save(replace(index._session.settings, confidence=Confidence(0.0, (0.0,) * 5)))
    lines = run("search", "how deep is the sea").stdout.splitlines()
    assert (lines[0].split(), lines[1].split()[2]) == (["score", "right", "id", "document"], "50%")
    assert json.loads(run("search", "sea", "--least", 0.5, "-k", 1, "--json").stdout)["hits"][0]["confidence"] == 0.5
    assert run("search", "sea", "--least", 0.6).stdout == "no hit is right with a probability of 0.6 or more\n"
    run("search", "sea", "--least", 1.5, code=1)


@pytest.mark.parametrize("mode", ["fused", "learned", "lexical"])
def test_search_has_three_modes(run: Run, shop: Path, mode: str) -> None:
    assert json.loads(run("search", "mountain", "--mode", mode, "--json").stdout)["mode"] == mode


def test_search_filters_on_metadata(run: Run, shop: Path) -> None:
    told = json.loads(run("search", "river", "--where", '{"lang": "en", "year": {"lt": 2005}}', "--json").stdout)
    assert [hit["id"] for hit in told["hits"]] == ["boots"]
    assert run("search", "river", "--where", '{"lang": "fr"}').stdout == "no document passes the filter\n"
    by_words = run("search", "zebra", "--where", '{"lang": "en"}', "--mode", "lexical").stdout
    assert by_words == "no document passes the filter and shares a word with the query\n"
    assert run("search", "zebra", "--mode", "lexical").stdout == "no document shares a word with the query\n"


@pytest.mark.parametrize("bad", ["{", "[]", '"en"', "lang=en"])
def test_a_filter_that_is_no_json_object_is_wrong_usage(run: Run, shop: Path, bad: str) -> None:
    said = run("search", "river", "--where", bad, code=2).stderr
    assert "expected a JSON object like" in " ".join(said.split())


def test_bad_searches_are_refused(run: Run, shop: Path) -> None:
    assert "use one of eq, ne, gt" in run("search", "x", "--where", '{"a": {"like": 1}}', code=1).stderr
    assert "at least one character" in run("search", " ", code=1).stderr
    assert "not UTF-8" in run("search", "\udcff", code=2).stderr
    assert "stdin is not UTF-8" in run("search", "-", stdin=b"\xff\n", code=1).stderr
    run("search", "x", "-k", 0, code=2)
    run("search", "x", "--mode", "magic", code=2)
    run("search", code=2)


def test_no_index_is_refused_with_its_path(run: Run) -> None:
    assert "no index in shop: it has no store.db" in run("search", "x", code=1).stderr
    Path("other").mkdir()
    assert "no index in other" in run("info", "--index", "other", code=1).stderr


def test_the_index_must_be_named(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("INCDSI_INDEX")
    assert "--index" in run("search", "x", code=2).stderr


def test_search_reads_queries_from_stdin(run: Run, shop: Path) -> None:
    lines = run("search", "-", "--json", stdin="sea\n\nmountain\n").stdout.splitlines()
    assert [json.loads(line)["query"] for line in lines] == ["sea", "mountain"]


def test_text_cannot_steer_the_terminal(run: Run, encoder: str) -> None:
    run("add", write("docs.jsonl", [{"id": "evil", "text": "sea \x1b[31m[bold]red[/bold]\x07"}]), "--encoder", encoder)
    for said in (run("search", "sea").stdout, run("get", "evil").stdout):
        assert "\x1b" not in said
        assert "\x07" not in said
        assert "[bold]red[/bold]" in said


def test_get_shows_a_list_as_its_values(run: Run, shop: Path) -> None:
    run("add", write("more.jsonl", [{"id": "socks", "text": "warm socks", "tags": ["red", "new"]}]))
    assert "tags   red, new" in [line.strip() for line in run("get", "socks").stdout.splitlines()]


def test_get_round_trips_through_update(run: Run, shop: Path) -> None:
    before = run("get", "boots", "--json").stdout
    run("update", "-", stdin=before)
    assert run("get", "boots", "--json").stdout == before
    said = run("get", "boots").stdout
    assert "Waterproof boots" in said
    assert said.endswith("\nhiking boots for a deep river\n")
    assert "no document 'ghost' in shop" in run("get", "ghost", code=1).stderr


def test_info_counts(run: Run, shop: Path) -> None:
    told = json.loads(run("info", "--json").stdout)
    assert (told["documents"], told["dimension"], told["method"], told["quality"]) == (3, 16, "general", {})
    assert told["bytes"] > 0
    assert told["hyperparameters"]["margins"] == {"retrieve": 2.0, "preserve": 1.0}
    said = run("info").stdout
    assert re.search(r"^documents +3 *$", said, re.MULTILINE)
    assert "quality is not measured" in said


def test_an_export_makes_the_same_index(run: Run, shop: Path, encoder: str) -> None:
    run("teach", "who won", "mountain")
    assert json.loads(run("get", "mountain", "--json").stdout)["taught"] == ["who won"]
    assert "taught  who won" in run("get", "mountain").stdout
    run("export", "-o", "out.jsonl")
    run("add", "out.jsonl", "--index", "again", "--encoder", encoder)
    assert run("export", "--index", "again").stdout == Path("out.jsonl").read_text(encoding="utf-8")
    assert json.loads(run("export", "-o", "out.jsonl", "--json").stdout) == {"path": "out.jsonl", "lines": 3}


def test_a_trec_run_has_six_columns(run: Run, shop: Path) -> None:
    topics = write("topics.tsv", ["qid\ttext\n", "q1\tdeep sea\n", "q2\tmountain\n"])
    lines = run("export", "--format", "trec-run", "--queries", topics, "-k", 2).stdout.splitlines()
    assert [line.split()[:2] + line.split()[3:4] for line in lines] == [
        ["q1", "Q0", "1"],
        ["q1", "Q0", "2"],
        ["q2", "Q0", "1"],
        ["q2", "Q0", "2"],
    ]
    assert {line.split()[2] for line in lines} <= {document["id"] for document in DOCUMENTS}
    for line in lines:
        float(line.split()[4])


def test_a_failed_export_leaves_nothing(run: Run, shop: Path) -> None:
    run("export", "--format", "trec-run", code=2)
    run("export", "--format", "trec-run", "--queries", "q.jsonl", "--json", code=2)
    spaces = write("q.jsonl", [{"id": "a b", "text": "sea"}])
    said = run("export", "--format", "trec-run", "--queries", spaces, "-o", "run.trec", code=1).stderr
    assert "expected ids without spaces" in said
    wordless = write("w.jsonl", [{"id": "a"}])
    said = run("export", "--format", "trec-run", "--queries", wordless, "-o", "run.trec", code=1).stderr
    assert "w.jsonl:1: no query text, found only" in said
    assert not [path for path in Path().iterdir() if "run.trec" in path.name]
    assert "No such file" in run("export", "-o", "nowhere/out.jsonl", code=1).stderr


def test_queries_are_for_a_run_only_and_a_folder_is_no_file(run: Run, shop: Path) -> None:
    topics = write("topics.tsv", ["qid\ttext\n", "q1\tdeep sea\n"])
    assert "with --format trec-run only" in run("export", "--queries", topics, "-o", "out.jsonl", code=2).stderr
    assert not Path("out.jsonl").exists()
    run("export", "-o", ".", code=2)


def test_the_version_is_one_line(run: Run) -> None:
    assert run("--version").stdout == f"incdsi {metadata.version('incdsi')}\n"
    assert run("--version", "search").stdout.startswith("incdsi ")


def test_version_names_the_format(run: Run) -> None:
    told = json.loads(run("version", "--json").stdout)
    assert told["incdsi"]
    assert told["index_format"] >= 1
    assert told["incdsi"] in run("version").stdout


def test_json_has_no_infinities() -> None:
    assert as_line({"a": float("inf"), "b": [float("nan"), 1.5]}) == '{"a": null, "b": [null, 1.5]}'
