"""Several indexes on one server: a page that lists them, and the page of each under its name."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.server.browser.site import DOCUMENTS, REFUSED, Site, Visit, rows, search
from tests.server.browser.test_page_manners import PHONE, violations
from tests.server.servers import KEY, make, several

SHOP_KEY = "a-key-for-the-shop-alone"


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """Indexes `shop` and `wiki`, and one that cannot be opened."""
    folder = tmp_path / "indexes"
    for name, some in (("shop", DOCUMENTS), ("wiki", DOCUMENTS[:3]), ("broken", [])):
        with make(folder / name) as index:
            index.add_many(some)
    (folder / "broken" / "store.db").write_bytes(b"no store" * 200)
    with several(folder, key=KEY, keys={"shop": {"key": SHOP_KEY}}) as url:
        site = Site(None, folder)  # type: ignore[arg-type]
        site.url, site.expected = url, [REFUSED]
        yield site


def test_the_list_leads_to_each_index_and_back(visit: Visit) -> None:
    page = visit(ready=False)
    page.fill("#key", KEY)
    page.keyboard.press("Enter")
    expect(page.locator("#said")).to_have_text("3 indexes")
    expect(page.locator("#indexes .unavailable")).to_contain_text("index 'broken' cannot be opened")
    page.get_by_role("link", name="shop").press("Enter")
    expect(page.locator("html[data-ready]")).to_be_attached()  # the key of the server opens it
    expect(page.locator("#name")).to_have_text("shop")
    expect(page).to_have_title("shop · incdsi")
    search(page, "tent")
    expect(rows(page)).to_have_count(10)
    expect(page.locator("#map")).to_have_attribute("data-points", "12")
    page.get_by_role("link", name="all indexes").click()
    page.get_by_role("link", name="wiki").click()
    expect(page.locator("#figure-documents")).to_have_text("3")


def test_a_key_of_one_index_shows_that_one(visit: Visit) -> None:
    page = visit("/shop/", ready=False)
    page.fill("#key", SHOP_KEY)
    page.keyboard.press("Enter")
    expect(page.locator("html[data-ready]")).to_be_attached()
    page.get_by_role("link", name="all indexes").click()
    expect(page.locator("#key-dialog")).to_be_visible()  # it was the key of the shop
    page.fill("#key", SHOP_KEY)
    page.keyboard.press("Enter")
    expect(page.locator("#indexes li")).to_have_count(1)
    expect(page.locator("#said")).to_have_text("1 index")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_and_a_phone_have_nothing_to_complain_about(visit: Visit, theme: str) -> None:
    page = visit(ready=False, color_scheme=theme, viewport=PHONE)
    expect(page.locator("#key-dialog")).to_be_visible()
    assert violations(page, "#key-dialog") == []
    page.fill("#key", KEY)
    page.keyboard.press("Enter")
    expect(page.locator("#indexes li")).to_have_count(3)
    assert violations(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    page.get_by_role("link", name="shop").click()
    expect(page.locator("html[data-ready]")).to_be_attached()
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    assert violations(page) == []
