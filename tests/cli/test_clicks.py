"""learn and gaps: what they do, say and refuse."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.conftest import Run, write
from tests.server.servers import running

CLICKS = [
    {"query": "long walk", "id": "mountain", "count": 3},
    {"query": "is it cold", "id": "sea"},
    {"query": "two ways", "id": "sea", "count": 2},
    {"query": "two ways", "id": "boots", "count": 2},
    {"query": "lamp", "id": "lamp-7", "count": 9},
]


def test_learn_says_what_it_learned_what_it_ignored_and_that_again_is_nothing(run: Run, shop: Path) -> None:
    log = write("clicks.jsonl", CLICKS)
    plan = run("learn", log, "--dry-run").stdout
    assert plan.startswith("would learn 1 query for 1 document\n")
    said = run("learn", log).stdout
    assert said.startswith("learned 1 query for 1 document\n")
    assert "ignored 1: too few clicks ('is it cold' for sea)" in said
    assert "ignored 2: contradicted by other clicks ('two ways' for boots, 'two ways' for sea)" in said
    assert "ignored 1: unknown document ('lamp' for lamp-7)" in said
    again = run("learn", log).stdout
    assert again.startswith("nothing new to learn: the index is as it was\n")
    assert "already known 1 ('long walk' for mountain)" in again


def test_learn_in_json_and_with_thresholds(run: Run, shop: Path) -> None:
    log = write("clicks.jsonl", CLICKS)
    told = json.loads(run("learn", log, "--least", 1, "--share", 0.5, "--json").stdout)
    assert told["counts"]["learned"] == 4
    assert told["counts"]["unknown document"] == 1
    learned = {lesson["id"] for lesson in told["lessons"] if lesson["outcome"] == "learned"}
    assert learned == {"mountain", "sea", "boots"}
    assert (told["dry_run"], told["skipped"]) == (False, [])


def test_a_bad_log_is_refused_whole_unless_bad_lines_are_skipped(run: Run, shop: Path) -> None:
    log = write("clicks.jsonl", [*CLICKS, {"text": "no click", "id": "sea"}])
    before = run("export").stdout
    said = run("learn", log, code=1).stderr
    assert "clicks.jsonl:6: field 'query' is missing" in said
    assert "nothing was read; fix this first, or use --skip-bad" in said
    assert run("export").stdout == before
    assert run("learn", log, "--skip-bad").stdout.startswith("learned 1 query")
    assert "name the file of the log" in run("learn", code=1).stderr
    assert "name the file of the log" in run("gaps", code=1).stderr
    run("learn", log, "--share", 2, "--skip-bad", code=1)


def test_gaps_shows_what_is_asked_most_with_candidates(run: Run, shop: Path) -> None:
    log = write("queries.jsonl", [{"query": "zebra"}, {"query": "river"}, {"text": "Zebra"}])
    result = run("gaps", log, "-k", 2)
    assert result.stdout.startswith("1 query of 2 not answered well\n")
    assert "no word in common" in result.stdout
    assert "judged by words" in result.stderr
    told = json.loads(run("gaps", log, "--json").stdout)
    assert [(gap["query"], gap["times"], len(gap["candidates"])) for gap in told["gaps"]] == [("zebra", 2, 3)]
    assert (told["queries"], told["judged_by"]) == (2, "words")


def test_both_work_on_a_server_with_a_file_and_with_its_own_logs(run: Run, shop: Path, tmp_path: Path) -> None:
    from incdsi.index import Index

    kept = {"log_clicks": tmp_path / "kept.jsonl", "log_queries": tmp_path / "asked.jsonl"}
    with Index.open(shop) as index, running(index, shop, **kept) as url:
        log = write("clicks.jsonl", CLICKS)
        assert "learned 1 query" in run("learn", log, "--index", url).stdout
        run("teach", "zebra", "sea", "--index", url)
        assert "already known 1" in run("learn", "--least", 1, "--index", url).stdout
        run("search", "xylophone", "--index", url)
        assert "1 query of 1 not answered well\n" in run("gaps", "--index", url).stdout
