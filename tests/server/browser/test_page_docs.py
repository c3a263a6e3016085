"""/docs: the API to read, from this server alone."""

from __future__ import annotations

import re
import subprocess

import httpx2
import pytest
from playwright.sync_api import Page, expect

from tests.server.browser.site import Site, Visit
from tests.server.browser.test_page_manners import violations


@pytest.fixture
def page(visit: Visit) -> Page:
    opened = visit("/docs", ready=False)
    expect(opened.locator("article").first).to_be_visible()
    return opened


def test_every_endpoint_is_there_with_its_fields(page: Page, site: Site) -> None:
    described = httpx2.get(f"{site.url}/openapi.json").json()["paths"]
    wanted = {f"{method.upper()}{path}" for path, methods in described.items() for method in methods}
    assert set(page.locator("article h2").all_inner_texts()) == {re.sub(r"^([A-Z]+)", r"\1\n", one) for one in wanted}
    search = page.locator("#get-v1-search")
    for words in ("q", "required", '"fused" | "learned" | "lexical"', "at most 1000", "waterproof hiking boots"):
        expect(search).to_contain_text(words)
    page.locator("#post-v1-documents-upsert summary").click()
    expect(page.locator("#post-v1-documents-upsert details")).to_contain_text("created")


def test_its_links_lead_to_the_endpoints(page: Page) -> None:
    page.get_by_role("navigation").get_by_role("link", name="/v1/teach").click()
    expect(page.locator("#post-v1-teach")).to_be_in_viewport()
    assert page.url.endswith("/docs#post-v1-teach")


def test_its_curl_lines_for_reading_run_as_they_stand(page: Page, site: Site) -> None:
    for anchor in ("get-v1-search", "post-v1-search", "post-v1-documents-count", "get-v1-version"):
        line = page.locator(f"#{anchor} pre").inner_text()
        done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=True)
        assert '"version":' in done.stdout, (line, done.stdout)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_follows_the_systems_colours_and_asks_no_other_host(visit: Visit, site: Site, scheme: str) -> None:
    page = visit("/docs", ready=False, color_scheme=scheme)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.reload()
    expect(page.locator("article").first).to_be_visible()
    assert page.locator("html").get_attribute("data-theme") == scheme
    assert asked
    assert all(url.startswith(site.url) for url in asked)


def test_it_fits_a_phone(visit: Visit) -> None:
    page = visit("/docs", ready=False, viewport={"width": 360, "height": 740})
    expect(page.locator("article").first).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_to_complain_about(visit: Visit, scheme: str) -> None:
    page = visit("/docs", ready=False, color_scheme=scheme)
    expect(page.locator("article").first).to_be_visible()
    page.locator("#get-v1-search summary").click()
    assert violations(page) == []
