"""Files that are dropped on the page or chosen: progress, one sentence on refusal, nothing half-added."""

from __future__ import annotations

import json
import re

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from tests.server.browser.site import REFUSED, Site, Visit, ranked, search
from tests.server.browser.test_page_manners import KEY, PHONE, READ_KEY, violations

TABLE = "id,title,text\nkite,Kite,A kite for the windy valley.\nsaw,Saw,A folding saw for wood.\n"
DROP = """([name, content]) => {
  const data = new DataTransfer();
  data.items.add(new File([content], name));
  for (const kind of ['dragenter', 'dragover', 'drop']) {
    document.body.dispatchEvent(new DragEvent(kind, {dataTransfer: data, bubbles: true, cancelable: true}));
  }
}"""


def drop(page: Page, name: str, content: str) -> Locator:
    page.evaluate(DROP, [name, content])
    return page.locator(f"#files li[data-file='{name}']").last


def choose(page: Page, **files: str) -> None:
    chosen = [
        {"name": name.replace("_", "."), "mimeType": "text/plain", "buffer": text.encode()}
        for name, text in files.items()
    ]
    page.set_input_files("#choose-files", chosen)  # type: ignore[arg-type]


def test_a_dropped_file_is_added_and_found_and_can_be_undone(visit: Visit, site: Site) -> None:
    page = visit()
    search(page, "windy valley")
    told = drop(page, "things.csv", TABLE)
    expect(told).to_have_class("done")
    expect(told).to_contain_text(re.compile(r"2 documents added.* in [\d.]+ s\."))
    expect(page.locator("#figure-documents")).to_have_text("14")
    expect(page.locator("#map")).to_have_attribute("data-points", "14")
    expect(page.locator("#results li[data-id=kite]")).to_be_visible()
    page.get_by_role("button", name="Undo").click()
    expect(page.locator("#figure-documents")).to_have_text("12")
    expect(told).to_have_count(0)
    assert "kite" not in site.index


def test_something_to_drop_on_shows_while_a_file_is_dragged(visit: Visit) -> None:
    page = visit()
    drag = """kind => {
      const data = new DataTransfer();
      data.items.add(new File(['a'], 'a.txt'));
      document.body.dispatchEvent(new DragEvent(kind, {dataTransfer: data, bubbles: true}));
    }"""
    page.evaluate(drag, "dragenter")
    expect(page.locator("#drop")).to_be_visible()
    page.evaluate(drag, "dragleave")
    expect(page.locator("#drop")).to_be_hidden()


def test_several_files_of_several_kinds_go_one_after_another(visit: Visit, site: Site) -> None:
    page = visit()
    choose(
        page, notes_md="# Knots\nThe bowline holds.", more_jsonl='{"id": "axe", "text": "A small axe."}', a_csv=TABLE
    )
    expect(page.locator("#files li.done")).to_have_count(3)
    assert {"notes.md", "axe", "kite", "saw"} <= {document.id for document in site.index.documents()}
    assert site.index.get("notes.md").title == "Knots"


def test_a_refusal_is_one_sentence_and_nothing_is_added(visit: Visit, site: Site) -> None:
    site.expected.append(REFUSED)
    page = visit()
    before = site.index.version
    told = drop(page, "bad.jsonl", '{"id": "a", "text": "fine"}\n{"id": "b", "text": \n')
    expect(told).to_have_class("refused")
    expect(told).to_contain_text("Nothing was added. Line 2: not valid JSON")
    told = drop(page, "slides.pdf", "%PDF-1.7")
    expect(told).to_contain_text("Nothing was added. Unknown file type; use .jsonl, .csv")
    assert site.index.version == before
    told.get_by_role("button", name="Close the message about slides.pdf").click()
    expect(told).to_have_count(0)


def test_documents_that_are_there_are_replaced_only_when_one_says_so(visit: Visit, site: Site) -> None:
    site.expected.append(REFUSED)
    page = visit()
    told = drop(page, "things.csv", TABLE + "boots,Boots,Rubber boots.\n")
    expect(told).to_contain_text("“boots” is in the index already.")
    assert len(site.index) == 12
    told.get_by_role("button", name="Replace what is there").click()
    expect(told).to_contain_text("2 documents added, 1 replaced")
    assert site.index.get("boots").text == "Rubber boots."
    assert site.index.queries("boots") == ["shoes for rain"]


def test_columns_of_another_name_are_asked_for(visit: Visit, site: Site) -> None:
    site.expected.append(REFUSED)
    page = visit()
    told = drop(page, "things.csv", "sku,name,about\n7,Kite,For the windy valley.\n")
    expect(told).to_contain_text("the columns are sku, name, about. Name the columns to use:")
    told.get_by_label("Id column").fill("sku")
    told.get_by_label("Title column").fill("name")
    told.get_by_label("Text column").fill("about")
    page.keyboard.press("Enter")
    expect(told).to_contain_text("1 document added")
    assert (site.index.get("7").title, site.index.get("7").text) == ("Kite", "For the windy valley.")


def test_progress_is_shown_step_by_step(visit: Visit) -> None:
    page = visit()
    steps: list[dict[str, object]] = [{"stage": "adding", "done": done, "of": 1000} for done in (300, 1000)]
    steps += [{"stage": "tuning", "done": 1, "of": 9}, {"status": 507, "detail": "The disk is full."}]
    body = "".join(json.dumps(step) + "\n" for step in steps)
    page.evaluate(
        """() => {
          const seen = window.seen = [];
          const texts = records => records.flatMap(one => [...one.addedNodes].map(node => node.textContent));
          const observer = new MutationObserver(records => seen.push(...texts(records)));
          observer.observe(document.querySelector('#files'), {subtree: true, childList: true});
        }"""
    )
    page.route("**/v1/files*", lambda route: route.fulfill(status=200, body=body))
    drop(page, "many.csv", TABLE)
    expect(page.locator("#files .refused")).to_contain_text("Nothing was added. The disk is full.")
    told = ["Adding: 300 of 1,000 documents", "Adding: 1,000 of 1,000 documents", "Added. The index tunes itself"]
    assert [text for text in page.evaluate("window.seen") if text in told] == told


def test_a_server_that_is_gone_meanwhile_is_tried_again(visit: Visit, site: Site) -> None:
    site.expected.append(REFUSED)
    page = visit()

    def gone(route: Route) -> None:
        route.abort()

    page.route("**/v1/files*", gone, times=1)
    told = drop(page, "things.csv", TABLE)
    expect(told).to_contain_text("The server does not answer.")
    told.get_by_role("button", name="Try again").click()
    expect(told).to_have_class("done")
    assert len(site.index) == 14


def test_files_can_be_chosen_without_a_mouse(visit: Visit, site: Site) -> None:
    page = visit()
    page.on("filechooser", lambda _: None)
    page.evaluate("0")  # when this is answered the browser hands us its choosers
    with page.expect_file_chooser() as choosing:
        page.keyboard.press("f")
    choosing.value.set_files([{"name": "t.csv", "mimeType": "text/csv", "buffer": TABLE.encode()}])
    expect(page.locator("#files .done")).to_be_visible()
    page.keyboard.press("a")
    with page.expect_file_chooser() as choosing:
        page.get_by_role("button", name="choose files").press("Enter")
    choosing.value.set_files([{"name": "u.txt", "mimeType": "text/plain", "buffer": b"A spade."}])
    expect(page.locator("#editor")).to_be_hidden()
    expect(page.locator("#files .done")).to_have_count(2)
    assert "u.txt" in site.index


def test_a_reading_key_drops_nothing(visit: Visit, site: Site) -> None:
    site.expected.append(REFUSED)
    site.restart(key=KEY, read_key=READ_KEY)
    page = visit(ready=False)
    page.fill("#key", READ_KEY)
    page.keyboard.press("Enter")
    expect(page.locator("html[data-ready]")).to_be_attached()
    drop(page, "things.csv", TABLE)
    page.wait_for_timeout(100)
    expect(page.locator("#files li")).to_have_count(0)
    assert len(site.index) == 12


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_and_a_phone_have_nothing_to_complain_about(visit: Visit, site: Site, theme: str) -> None:
    site.expected.append(REFUSED)
    page = visit(color_scheme=theme, viewport=PHONE)
    search(page, "tent")
    drop(page, f"{'long' * 30}.csv", TABLE)
    expect(page.locator("#files .done")).to_be_visible()
    drop(page, "things.csv", "sku,name,about\n7,Kite,For the windy valley.\n")
    expect(page.locator("#files .refused")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    assert violations(page) == []
    assert ranked(page)
