from __future__ import annotations

import json

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, Route, expect

from incdsi.documents import Document
from tests.server.browser.site import REFUSED, Site, Visit, ranked, row, rows, search, shows

KEY, READ_KEY = "a-key-that-may-write", "a-key-that-may-read"
PHONE = {"width": 360, "height": 740}
BACKGROUND = "getComputedStyle(document.body).backgroundColor"


def test_everything_can_be_done_without_a_mouse(visit: Visit, site: Site) -> None:
    page = visit()
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to search")).to_be_focused()
    page.keyboard.press("/")
    page.keyboard.type("cold hands")
    shows(page, "cold hands")
    third = ranked(page)[2]
    for _ in range(3):
        page.keyboard.press("ArrowDown")
    expect(row(page, third).locator(".title")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#reader-id")).to_have_text(third)
    page.keyboard.press("Escape")
    expect(row(page, third).locator(".title")).to_be_focused()
    page.keyboard.press("t")
    expect(rows(page).first).to_have_attribute("data-id", third)
    expect(row(page, third).locator(".title")).to_be_focused()
    page.keyboard.press("Delete")
    expect(row(page, third)).to_have_count(0)
    page.keyboard.press("u")
    expect(row(page, third)).to_have_count(1)
    page.keyboard.press("e")
    expect(page.locator("#editor-text")).to_be_focused()
    page.keyboard.press("Escape")
    page.keyboard.press("a")
    expect(page.locator("#editor-title")).to_be_focused()
    page.keyboard.type("Whistle")
    page.keyboard.press("Tab")
    page.keyboard.type("A whistle is heard across the valley.")
    page.keyboard.press("Control+Enter")
    expect(page.locator("#receipt")).to_contain_text("Added Whistle")
    assert len(site.index) == 13


def test_single_keys_do_not_act_while_typing_and_can_be_switched_off(visit: Visit, site: Site) -> None:
    page = visit()
    page.fill("#query", "")
    page.locator("#query").press_sequentially("tea?/u")
    shows(page, "tea?/u")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("?")
    expect(page.locator("#shortcuts")).to_be_visible()
    page.get_by_role("checkbox", name="Single-key shortcuts").uncheck()
    page.get_by_role("button", name="Done").click()
    before = site.index.version
    page.keyboard.press("t")
    page.keyboard.press("Delete")
    page.keyboard.press("a")
    page.wait_for_timeout(100)
    expect(page.locator("dialog[open]")).to_have_count(0)
    assert site.index.version == before


def test_dark_as_the_system_says_until_one_chooses(visit: Visit) -> None:
    page = visit(color_scheme="dark")
    assert page.evaluate(BACKGROUND) == "rgb(18, 20, 22)"
    page.get_by_role("button", name="Dark theme", pressed=True).click()
    assert page.evaluate(BACKGROUND) == "rgb(251, 250, 248)"
    page.reload()
    assert page.evaluate(BACKGROUND) == "rgb(251, 250, 248)"


def test_nothing_is_wider_than_a_phone(visit: Visit, site: Site) -> None:
    site.index.add(Document(id="w" * 90, title="Wide" + "e" * 300, text="wide " + "x" * 500), ["wide " * 40])
    page = visit(viewport=PHONE, has_touch=True, is_mobile=True)
    width = "document.documentElement.scrollWidth"
    assert page.evaluate(width) <= PHONE["width"]
    search(page, "wide" + " wide" * 30)
    assert page.evaluate(width) <= PHONE["width"]
    rows(page).first.get_by_role("button", name="This is the one").click()
    expect(page.locator("#receipt")).to_be_visible()
    rows(page).first.locator(".title").click()
    expect(page.locator("#reader")).to_be_visible()
    assert page.evaluate(width) <= PHONE["width"]
    for dialog in ("#reader", "#editor"):
        if dialog == "#editor":
            page.locator("#reader").get_by_role("button", name="Edit").click()
            expect(page.locator(dialog)).to_be_visible()
        assert page.locator(dialog).evaluate("it => it.scrollWidth <= it.clientWidth")


def test_a_server_that_goes_and_comes_back(visit: Visit, site: Site) -> None:
    site.expected.append(REFUSED)
    page = visit()
    search(page, "fire")
    page.get_by_role("button", name="Add document").click()
    page.fill("#editor-id", "matches")
    page.fill("#editor-text", "Matches that light in the rain.")
    site.stop()
    page.click("#editor-save")
    expect(page.locator("#editor-problem")).to_contain_text("What you typed is kept")
    page.click("#editor-cancel")
    expect(page.locator("#banner")).to_contain_text("The server does not answer")
    page.fill("#query", "fire and rain")
    expect(page.locator("#status")).to_contain_text("Not searched")
    site.start()
    page.locator("#retry").dispatch_event("click")  # it may have found the server by itself, and be hidden by now
    expect(page.locator("#banner")).to_contain_text("The server is back")
    shows(page, "fire and rain")
    expect(page.locator("#banner")).to_be_hidden()
    page.get_by_role("button", name="Add document").click()
    expect(page.locator("#editor-text")).to_have_value("Matches that light in the rain.")
    page.click("#editor-save")
    expect(page.locator("#receipt")).to_contain_text("Added matches")
    assert "matches" in site.index


def test_a_document_whose_answer_was_lost_is_not_added_twice(visit: Visit, site: Site) -> None:
    site.expected.append(REFUSED)
    page = visit()

    def lose_answer(route: Route) -> None:
        route.fetch()
        route.abort()

    page.route("**/v1/documents", lose_answer, times=1)
    page.get_by_role("button", name="Add document").click()
    page.fill("#editor-text", "A kite for the windy valley.")
    page.click("#editor-save")
    expect(page.locator("#editor-problem")).to_contain_text("What you typed is kept")
    assert len(site.index) == 13
    page.click("#editor-save")
    expect(page.locator("#receipt")).to_contain_text("Added document-")
    assert len(site.index) == 13


def test_it_tries_again_by_itself(visit: Visit, site: Site) -> None:
    site.expected.append(REFUSED)
    page = visit()
    site.stop()
    page.fill("#query", "star")
    expect(page.locator("#banner")).to_be_visible()
    site.start()
    shows(page, "star")


def test_a_locked_server_asks_for_its_key_and_forgets_it_with_the_tab(visit: Visit, site: Site) -> None:
    site.expected.append(REFUSED)
    site.restart(key=KEY, read_key=READ_KEY)
    page = visit(ready=False)
    expect(page.locator("#key-dialog")).to_be_visible()
    page.fill("#key", "a-wrong-key-for-this")
    page.keyboard.press("Enter")
    expect(page.locator("#key-problem")).to_have_text("That key was not accepted.")
    page.fill("#key", KEY)
    page.get_by_role("button", name="Unlock").click()
    expect(page.locator("html[data-ready]")).to_be_attached()
    search(page, "tent")
    row(page, "tent").get_by_role("button", name="Delete").click()
    expect(row(page, "tent")).to_have_count(0)
    assert KEY not in json.dumps(page.evaluate("[{...localStorage}, document.cookie, location.href]"))
    page.reload()
    expect(page.locator("html[data-ready]")).to_be_attached()  # the same tab still knows it


def test_a_reading_key_shows_no_button_that_writes(visit: Visit, site: Site) -> None:
    site.expected.append(REFUSED)
    site.restart(key=KEY, read_key=READ_KEY)
    page = visit(ready=False)
    page.fill("#key", READ_KEY)
    page.keyboard.press("Enter")
    expect(page.locator("html[data-ready]")).to_be_attached()
    search(page, "tent")
    expect(page.get_by_role("button", name="Add document")).to_be_hidden()
    expect(page.get_by_role("button", name="This is the one").first).to_be_hidden()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Delete")
    page.keyboard.press("t")
    page.keyboard.press("Enter")
    expect(page.locator("#reader")).to_be_visible()
    expect(page.locator("#reader").get_by_role("button", name="Delete")).to_be_hidden()
    assert len(site.index) == 12


def violations(page: Page, part: str | None = None) -> list[str]:
    """What axe says about the page, or about one part of it."""
    found = Axe().run(page, context=part).response["violations"]
    return [f"{one['id']}: {node['html'][:120]}" for one in found for node in one["nodes"]]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_to_complain_about(visit: Visit, theme: str) -> None:
    page = visit(color_scheme=theme)
    search(page, "a warm night at the lake")
    row(page, ranked(page)[4]).get_by_role("button", name="This is the one").click()
    expect(page.locator("#receipt")).to_be_visible()
    row(page, ranked(page)[3]).get_by_role("button", name="Delete").click()
    expect(page.get_by_role("button", name="Undo")).to_be_visible()
    page.locator("#query").press("ArrowDown")
    expect(page.locator("#neighbours")).to_be_visible()
    assert violations(page) == []
    for key, dialog in (("Enter", "#reader"), ("e", "#editor"), ("?", "#shortcuts")):
        page.keyboard.press(key)
        expect(page.locator(dialog)).to_be_visible()
        assert violations(page, dialog) == []
        page.keyboard.press("Escape")
        expect(page.locator(dialog)).to_be_hidden()


def test_axe_finds_nothing_in_the_key_dialog_the_banner_and_on_a_phone(visit: Visit, site: Site) -> None:
    site.expected.append(REFUSED)
    site.restart(key=KEY)
    page = visit(ready=False, viewport=PHONE)
    expect(page.locator("#key-dialog")).to_be_visible()
    assert violations(page, "#key-dialog") == []
    page.fill("#key", KEY)
    page.keyboard.press("Enter")
    search(page, "rope")
    site.stop()
    page.fill("#query", "a rope")
    expect(page.locator("#banner")).to_be_visible()
    assert violations(page) == []
    site.start()
