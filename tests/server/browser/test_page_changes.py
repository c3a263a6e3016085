from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from incdsi.documents import Document
from tests.server.browser.site import REFUSED, Site, Visit, map_says, ranked, row, rows, search

HAMMOCK = "A hammock between two trees for a night under the stars."


def fill(page: Page, **fields: str) -> None:
    for name, value in fields.items():
        page.fill(f"#editor-{name}", value)


def add(page: Page, **fields: str) -> None:
    page.get_by_role("button", name="Add document").click()
    fill(page, **fields)
    page.click("#editor-save")


def test_an_added_document_is_found_and_its_milliseconds_are_told(visit: Visit, site: Site) -> None:
    page = visit()
    search(page, "sleep between trees")
    add(page, id="hammock", title="Hammock", text=HAMMOCK, queries="sleep between trees\nbed for a forest\n")
    expect(page.locator("#receipt")).to_contain_text(re.compile(r"Added Hammock in [\d.,]+ ms"))
    steps = page.locator("#receipt dt").all_inner_texts()
    assert {"encode", "constrain", "solve", "commit"} & set(steps)
    assert set(steps) <= {"generate", "encode", "constrain", "solve", "commit", "append"}
    expect(rows(page).first).to_have_attribute("data-id", "hammock")
    assert site.index.get("hammock").text == HAMMOCK
    assert site.index.queries("hammock") == ["sleep between trees", "bed for a forest"]


def test_adding_can_be_undone(visit: Visit, site: Site) -> None:
    page = visit()
    add(page, id="hammock", title="Hammock", text=HAMMOCK)
    page.get_by_role("button", name="Undo").click()
    expect(page.locator("#figure-documents")).to_have_text("12")
    assert "hammock" not in site.index


def test_a_near_duplicate_is_named_and_can_be_opened(visit: Visit, site: Site) -> None:
    page = visit()
    twin = site.index.get("boots")
    add(page, id="twin", title=twin.title, text=twin.text, queries="shoes for rain")
    expect(page.locator("#receipt .conflicts")).to_contain_text("boots")
    page.locator("#receipt .conflicts button", has_text="boots").first.click()
    expect(page.locator("#reader-id")).to_have_text("boots")
    expect(page.locator("#reader-asked")).to_contain_text("shoes for rain")


def test_an_id_is_made_from_the_title(visit: Visit, site: Site) -> None:
    page = visit()
    add(page, title="Äpfel & Birnen", text="Fruit for the trail.")
    expect(page.locator("#receipt")).to_contain_text("Added Äpfel & Birnen")
    made = page.locator("#map").get_attribute("data-newest") or map_says(page, "newest")
    expect(page.locator("#map")).to_have_attribute("data-newest", re.compile(r"^äpfel-birnen-[0-9a-f]{4}$"))
    assert made == "" or made in site.index


def test_a_refused_document_keeps_what_was_typed(visit: Visit, site: Site) -> None:
    site.expected.append(REFUSED)
    page = visit()
    add(page, id="boots", title="Other boots", text="Not these.")
    expect(page.locator("#editor-problem")).to_contain_text("boots")
    expect(page.locator("#editor-text")).to_have_value("Not these.")
    fill(page, id="other-boots")
    page.click("#editor-save")
    expect(page.locator("#receipt")).to_contain_text("Added Other boots")
    assert site.index.get("boots").title == "Waterproof boots"


def test_teaching_shows_the_rank_before_and_after(visit: Visit, site: Site) -> None:
    question = "something to keep my fingers alive"
    before = [hit.document_id for hit in site.index.search(question)]
    lowest = before[-1]
    page = visit()
    search(page, question)
    row(page, lowest).get_by_role("button", name="This is the one").click()
    expect(rows(page).first).to_have_attribute("data-id", lowest)
    expect(page.locator(".rank-change")).to_contain_text(f"Rank {len(before)} before, 1 now.")
    expect(page.locator("#receipt")).to_contain_text(re.compile(r"learned in [\d.,]+ ms"))
    assert site.index.search(question)[0].document_id == lowest
    assert question in site.index.queries(lowest)


def test_the_taught_row_moves_to_its_new_place(visit: Visit, site: Site) -> None:
    page = visit(reduced_motion="no-preference")
    search(page, "something for the evening")
    lowest = ranked(page)[-1]
    row(page, lowest).get_by_role("button", name="This is the one").click()
    moving = page.wait_for_function(
        "id => document.querySelector(`#results > li[data-id='${id}']`)?.getAnimations().length", arg=lowest
    )
    assert moving.json_value() >= 1
    page.wait_for_function("() => document.querySelector('#results').getAnimations({subtree: true}).length === 0")


def test_an_edit_is_searched_at_once_and_can_be_undone(visit: Visit, site: Site) -> None:
    before = site.index.get("stove")
    page = visit()
    search(page, "stove")
    row(page, "stove").get_by_role("button", name="Edit").click()
    expect(page.locator("#editor-id")).to_have_value("stove")
    expect(page.locator("#editor-id")).not_to_be_editable()
    fill(page, title="Wood stove", text="It burns twigs from the forest.")
    page.click("#editor-save")
    expect(row(page, "stove").locator(".title")).to_have_text("Wood stove")
    assert site.index.get("stove").text == "It burns twigs from the forest."
    page.get_by_role("button", name="Undo").click()
    expect(row(page, "stove").locator(".title")).to_have_text(before.title)
    assert site.index.get("stove") == before


def test_an_edit_does_not_overwrite_someone_elses(visit: Visit, site: Site) -> None:
    page = visit()
    search(page, "lamp")
    row(page, "lamp").get_by_role("button", name="Edit").click()
    expect(page.locator("#editor-text")).to_have_value(site.index.get("lamp").text)
    site.index.update(Document(id="lamp", title="Head lamp", text="Changed by someone else."))
    fill(page, text="Changed by me.")
    page.click("#editor-save")
    expect(page.locator("#editor-problem")).to_contain_text("Someone else changed this document")
    assert site.index.get("lamp").text == "Changed by someone else."


def test_a_deleted_document_comes_back_with_its_questions(visit: Visit, site: Site) -> None:
    site.index.teach("dry feet in the wild", "boots")
    before, asked = site.index.get("boots"), site.index.queries("boots")
    page = visit()
    search(page, "dry feet in the wild")
    row(page, "boots").get_by_role("button", name="Delete").click()
    expect(row(page, "boots")).to_have_count(0)
    assert "boots" not in site.index
    page.get_by_role("button", name="Undo").click()
    expect(rows(page).first).to_have_attribute("data-id", "boots")
    assert site.index.get("boots") == before
    assert [(text, type(text)) for text in site.index.queries("boots")] == [(text, type(text)) for text in asked]


def test_a_document_that_is_not_among_the_results_can_be_taught(visit: Visit, site: Site) -> None:
    question = "a roof over my head"
    missing = [hit.document_id for hit in site.index.search(question, 12)][-1]
    page = visit()
    search(page, question)
    assert missing not in ranked(page)
    rows(page).first.locator(".title").focus()
    page.evaluate("id => import('/page/reader.js').then(reader => reader.openReader(id))", missing)
    page.locator("#reader").get_by_role("button", name="This is the one").click()
    expect(rows(page).first).to_have_attribute("data-id", missing)
    expect(page.locator(".rank-change")).to_contain_text("Rank 12 before, 1 now.")
