"""What people ask and the index answers badly: listed, taught with one press, or answered by a new document."""

from __future__ import annotations

import json
import re
from pathlib import Path

import httpx2
import pytest
from playwright.sync_api import Page, expect

from tests.server.browser.site import Site, Visit, rows, search, shows
from tests.server.browser.test_page_manners import PHONE, violations


@pytest.fixture
def log(site: Site, tmp_path: Path) -> Path:
    """The queries that the server keeps: two it cannot answer, one of them asked twice."""
    site.restart(log_queries=tmp_path / "queries.jsonl", log_clicks=tmp_path / "clicks.jsonl")
    for query in ("xylophone", "zeppelin", "xylophone", "tent"):
        httpx2.post(f"{site.url}/v1/search", json={"query": query}).raise_for_status()
    return tmp_path / "queries.jsonl"


def asked(log: Path) -> list[str]:
    return [json.loads(line)["query"] for line in log.read_text().splitlines()]


def cards(page: Page) -> list[str]:
    return [
        str(one) for one in page.locator("#gaps-list > li").evaluate_all("all => all.map(one => one.dataset.query)")
    ]


def test_gaps_are_listed_most_asked_first_and_taught_with_one_press(visit: Visit, site: Site, log: Path) -> None:
    page = visit()
    page.get_by_role("button", name="Questions it answers badly").click()
    expect(page.locator("#gaps-says")).to_contain_text("2 of 3 different questions asked so far")
    assert cards(page) == ["xylophone", "zeppelin"]
    first = page.locator("#gaps-list > li").first
    expect(first).to_contain_text("asked 2 times; no answer shares a word with it")
    first.get_by_role("button", name=re.compile("^This is the one for xylophone: ")).nth(1).click()
    expect(first).to_contain_text("“xylophone” now finds")
    (taught,) = [hit.document.title for hit in site.index.search("xylophone", 1)]
    expect(first).to_contain_text(taught)
    expect(page.locator("#gaps-list > li").nth(1).locator("button").first).to_be_focused()
    page.keyboard.press("Escape")
    page.keyboard.press("g")
    expect(page.locator("#gaps-says")).to_contain_text("1 of 3 different questions")
    assert cards(page) == ["zeppelin"]


def test_a_gap_can_be_closed_by_a_new_document(visit: Visit, site: Site, log: Path) -> None:
    page = visit()
    page.keyboard.press("g")
    page.get_by_role("button", name="Write a document that answers zeppelin").click()
    expect(page.locator("#gaps")).to_be_hidden()
    expect(page.locator("#editor-queries")).to_have_value("zeppelin")
    page.fill("#editor-title", "Airship")
    page.fill("#editor-text", "A ship of the air.")
    page.click("#editor-save")
    expect(page.locator("#receipt")).to_contain_text("Added Airship")
    assert site.index.search("zeppelin")[0].document.title == "Airship"


def test_a_gap_can_be_looked_for(visit: Visit, log: Path) -> None:
    page = visit()
    page.keyboard.press("g")
    page.get_by_role("button", name="Search for zeppelin").click()
    shows(page, "zeppelin")
    expect(page.locator("#query")).to_be_focused()


def test_half_typed_questions_are_not_kept_but_those_acted_on_are(visit: Visit, log: Path) -> None:
    page = visit()
    before = len(asked(log))
    page.locator("#query").press_sequentially("river", delay=200)
    shows(page, "river")
    with page.expect_response("**/v1/clicks"):
        rows(page).first.locator(".title").click()
    expect(page.locator("#reader")).to_be_visible()
    page.keyboard.press("Escape")
    page.fill("#query", "lake")
    with page.expect_response(lambda answer: '"k":1,' in (answer.request.post_data or "")):
        page.keyboard.press("Enter")
    assert asked(log)[before:] == ["river", "lake"]
    (click,) = [json.loads(line) for line in log.with_name("clicks.jsonl").read_text().splitlines()]
    assert click["query"] == "river"


def test_a_question_that_rests_is_kept(visit: Visit, log: Path) -> None:
    page = visit()
    before = len(asked(log))
    with page.expect_response(lambda answer: '"k":1,' in (answer.request.post_data or "")):
        search(page, "a warm night")
    assert asked(log)[before:] == ["a warm night"]


def test_without_a_log_it_says_how_to_keep_one(visit: Visit) -> None:
    page = visit()
    page.keyboard.press("g")
    expect(page.locator("#gaps-says")).to_contain_text("Start it with --log-queries FILE")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_and_a_phone_have_nothing_to_complain_about(visit: Visit, log: Path, theme: str) -> None:
    page = visit(color_scheme=theme, viewport=PHONE)
    page.get_by_role("button", name="Questions it answers badly").click()
    expect(page.locator("#gaps-list > li")).to_have_count(2)
    page.locator("#gaps-list .one").first.click()
    expect(page.locator("#gaps-list .closed")).to_be_visible()
    assert violations(page, "#gaps") == []
    assert page.locator("#gaps").evaluate("it => it.scrollWidth <= it.clientWidth")
