from __future__ import annotations

import math
import re
from dataclasses import replace

from playwright.sync_api import expect

from incdsi.confidence import Confidence
from incdsi.documents import Document
from tests.server.browser.site import Site, Visit, ranked, row, rows, search, shows

SCRIPT = "<script>window.broken = true</script><img src=x onerror='window.broken = true'> & <b>bold</b>"


def test_results_come_while_typing_and_say_what_was_learned(visit: Visit, site: Site) -> None:
    page = visit()
    page.locator("#query").press_sequentially("boots for rain")
    shows(page, "boots for rain")
    assert ranked(page) == [hit.document_id for hit in site.index.search("boots for rain")]
    expect(rows(page).first.locator(".scores")).to_contain_text(
        re.compile(r"[\d.]+.*learned −?[\d.]+ \+ nearest −?[\d.]+ \+ lexical −?[\d.]+")
    )
    expect(rows(page).first.locator(".bar i.learned")).to_be_attached()
    expect(page.locator("#status")).to_have_text(re.compile(r"^10 of 12 documents · [\d.,]+ ms$"))
    assert "boots" in [text.lower() for text in row(page, "boots").locator("mark").all_inner_texts()]


def test_a_hit_says_how_probably_it_is_right_once_the_index_can_tell(visit: Visit, site: Site) -> None:
    page = visit()
    search(page, "boots for rain")
    expect(rows(page).first.locator(".confidence")).not_to_be_attached()
    with site.index.engine.changing(None):
        told = Confidence(math.log(3), (0.0,) * 5)  # three to one, whatever is seen
        site.index._session.save(replace(site.index._session.settings, confidence=told))
    search(page, "a river at night")
    expect(rows(page).first.locator(".confidence")).to_have_text("75 % sure")


def test_the_mode_ranks_by_one_part_alone(visit: Visit, site: Site) -> None:
    page = visit()
    search(page, "a river at night")
    for mode in ("learned", "lexical", "fused"):
        page.get_by_role("radio", name=mode.capitalize()).check()
        wanted = [hit.document_id for hit in site.index.search("a river at night", mode=mode)]
        expect(rows(page).first).to_have_attribute("data-id", wanted[0])
        page.wait_for_function(
            "ids => [...document.querySelectorAll('#results > li')].map(li => li.dataset.id).join() === ids",
            arg=",".join(wanted),
        )
        parts = ["learned", "nearest", "lexical"]
        shown = [part for part in parts if rows(page).first.locator(f".bar .{part}").count()]
        assert shown == (parts if mode == "fused" else [mode])


def test_the_address_remembers_the_question(visit: Visit) -> None:
    page = visit("/?q=warm+gloves&mode=lexical")
    shows(page, "warm gloves")
    expect(page.locator("#query")).to_have_value("warm gloves")
    expect(page.get_by_role("radio", name="Lexical")).to_be_checked()
    page.fill("#query", "")
    expect(page.locator("#empty")).to_contain_text("12 documents")
    expect(page).to_have_url(re.compile(r"/\?mode=lexical$"))


def test_a_slow_answer_never_replaces_a_newer_one(visit: Visit) -> None:
    page = visit()
    page.route("**/v1/search", lambda route: route.continue_() if "stove" in (route.request.post_data or "") else None)
    page.fill("#query", "tent")
    with page.expect_request("**/v1/search"):
        page.keyboard.press("Enter")
    with page.expect_event("requestfailed"):  # the slow one is given up
        search(page, "stove")
    expect(rows(page).first).to_have_attribute("data-id", "stove")


def test_markup_in_a_document_is_shown_as_text(visit: Visit, site: Site) -> None:
    site.index.add(Document(id=f"odd/{SCRIPT}?#%", title=f"Markup {SCRIPT}", text=f"river {SCRIPT}"), [f"odd {SCRIPT}"])
    page = visit()
    search(page, f"markup {SCRIPT}")
    expect(rows(page).first.locator(".title")).to_have_text(f"Markup {SCRIPT}")
    expect(rows(page).first.locator(".snippet")).to_have_text(f"river {SCRIPT}")
    rows(page).first.locator(".title").click()
    expect(page.locator("#reader-text")).to_have_text(f"river {SCRIPT}")
    expect(page.locator("#reader-asked")).to_have_text(f"odd {SCRIPT}")
    expect(page.locator("#neighbours-heading")).to_contain_text(SCRIPT)
    assert page.evaluate("window.broken") is None
    assert page.locator("main img, dialog img").count() == 0


def test_figures_follow_the_server(visit: Visit, site: Site) -> None:
    page = visit()
    expect(page.locator("#figure-documents")).to_have_text("12")
    search(page, "tent")
    expect(page.locator("#figure-search")).to_have_text(re.compile(r"^[\d.,]+ms$"))
    site.index.delete("tent")
    expect(page.locator("#figure-documents")).to_have_text("11")


def test_a_long_document_shows_its_passages_and_opens_at_the_one_pressed(visit: Visit, site: Site) -> None:
    parts = [("Poles", "carbon poles"), ("Pegs", "steel pegs"), ("Canvas", "cotton canvas")]
    sections = "\n\n".join(f"## {title}\n\n" + f"The {words} need care. " * 40 for title, words in parts)
    site.index.add(Document(id="manual", title="Manual \U0001f3d5", text=f"# Manual \U0001f3d5\n\n{sections}"))
    page = visit()
    search(page, "cotton canvas care")
    hit = row(page, "manual")
    best = hit.locator(".passage").first
    expect(best.locator(".path")).to_have_text("Canvas")
    assert {text.lower() for text in best.locator("mark").all_inner_texts()} >= {"cotton", "canvas"}
    expect(hit.locator(".more .passage").first).to_be_hidden()
    hit.locator("summary").press("Enter")
    other = hit.locator(".more .path").first
    other.press("Enter")
    expect(page.locator("#reader-text .here")).to_be_in_viewport()
    expect(page.locator("#reader-text .here")).to_contain_text(f"The {dict(parts)[other.inner_text()]} need care.")
    page.keyboard.press("Escape")
    expect(other).to_be_focused()
    hit.locator(".title").click()
    expect(page.locator("#reader-text .here")).to_contain_text("The cotton canvas need care.")
