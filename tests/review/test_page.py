"""The page in a real browser: what a person does, and what it does when the server is gone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from fewtags.review.session import Review
from tests.review.browser import free_port, served
from tests.review.fabricate import make_app, make_review

PHONE = {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True}

PAINTED = """[4, 250].map((place) =>
  document.getElementById('heat').getContext('2d').getImageData(place, place, 1, 1).data[3])"""
UNNAMED = """[...document.querySelectorAll('button, a, input, select')]
  .filter((e) => !(e.ariaLabel || e.textContent.trim() || e.labels?.length)).map((e) => e.outerHTML)"""
CONTRAST = """() => {
  const rgb = (text) => text.match(/[\\d.]+/g).map(Number);
  const linear = (v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  const light = ([r, g, b]) => 0.2126 * linear(r / 255) + 0.7152 * linear(g / 255) + 0.0722 * linear(b / 255);
  const ground = (e) => {
    for (; e; e = e.parentElement) {
      const colour = rgb(getComputedStyle(e).backgroundColor);
      if (colour.length < 4 || colour[3] === 1) return colour;
    }
    return [255, 255, 255];
  };
  const poor = [];
  let looked = 0;
  for (const e of document.querySelectorAll('body *')) {
    const own = [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
    if (!own || !e.offsetParent || e.closest('.unseen, dialog, kbd')) continue;
    looked += 1;
    const [a, b] = [light(rgb(getComputedStyle(e).color)), light(ground(e))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) poor.push(`${e.tagName} ${e.textContent.trim().slice(0, 30)}: ${ratio.toFixed(2)}`);
  }
  return looked > 10 ? poor : ['too little text found'];
}"""


@dataclass
class Site:
    url: str
    review: Review
    browser: Browser
    problems: list[str]
    forgiven: tuple[str, ...] = ()
    """How problems begin that belong to the test."""

    def open(self, path: str = "/", **how) -> Page:
        """A new window of its own; what its console complains about fails the test."""
        page = self.browser.new_context(**how).new_page()
        page.set_default_timeout(15000)
        page.on("pageerror", lambda problem: self.problems.append(str(problem)))
        page.on("console", lambda line: line.type == "error" and self.problems.append(line.text))
        page.goto(self.url + path)
        return page

    def states(self) -> dict[str, int]:
        from fewtags.review.filters import Filters

        return self.review.progress(Filters())


@pytest.fixture
def site(browser: Browser, tmp_path: Path) -> Iterator[Site]:
    place, review = make_review(tmp_path)
    with served(make_app(place, review), free_port()) as url:
        made = Site(url, review, browser, [])
        yield made
        for context in browser.contexts:
            context.close()
    review.decisions.close()
    assert [problem for problem in made.problems if not problem.startswith(made.forgiven)] == []


def question(page: Page) -> str:
    expect(page.locator("#question")).to_contain_text("here?")
    return page.locator("#question").inner_text() + " " + page.locator("#image-name").inner_text()


def saved(page: Page, text: str) -> None:
    expect(page.locator("#progress-text")).to_have_text(text)


def all_sent(page: Page) -> None:
    expect(page.locator("body")).to_have_attribute("data-waiting", "0")


def test_answering_by_key(site: Site):
    page = site.open()
    asked = [question(page)]
    for key in ("y", "n", "s"):
        page.keyboard.press(key)
        asked.append(question(page))
    assert len(set(asked)) == 4
    saved(page, "2 of 37 answered, 1 skipped")
    for key in ("ArrowRight", "ArrowLeft", "ArrowDown"):
        page.keyboard.press(key)
    saved(page, "4 of 37 answered, 2 skipped")
    all_sent(page)
    assert site.states() == {"total": 37, "open": 31, "yes": 2, "no": 2, "skipped": 2}


def test_answering_by_click(site: Site):
    page = site.open()
    question(page)
    for name in ("Yes", "No", "Skip"):
        page.get_by_role("button", name=name, exact=False).and_(page.locator(".answers button")).click()
    saved(page, "2 of 37 answered, 1 skipped")
    expect(page.get_by_role("status").first).to_contain_text("skipped")


def test_undo_brings_the_question_back(site: Site):
    page = site.open()
    first = question(page)
    page.keyboard.press("y")
    second = question(page)
    page.keyboard.press("n")
    page.keyboard.press("u")
    expect(page.locator("#status")).to_contain_text("Took back")
    assert question(page) == second
    page.locator("#undo").click()
    saved(page, "0 of 37 answered")
    assert question(page) == first
    page.keyboard.press("u")
    expect(page.locator("#status")).to_contain_text("Nothing to undo")
    assert site.states()["open"] == 37


def test_reload_goes_on_where_it_was(site: Site):
    page = site.open("/?category=apple")
    question(page)
    page.keyboard.press("y")
    saved(page, "1 of 10 answered")
    current = question(page)
    page.reload()
    assert question(page) == current
    saved(page, "1 of 10 answered")
    page.keyboard.press("u")  # the tab knows itself again
    saved(page, "0 of 10 answered")


def test_filters(site: Site):
    page = site.open()
    question(page)
    page.keyboard.press("f")
    page.get_by_label("Category").select_option("scissors")
    expect(page.locator("#question")).to_have_text("Are there scissors here?")
    saved(page, "0 of 10 answered")
    page.locator("#filters [name=low]").fill("0.9")
    saved(page, "0 of 2 answered")
    assert "category=scissors" in page.url
    page.locator("#filters [name=decision]").select_option("absent")
    expect(page.get_by_role("heading", name="Nothing passes the filter")).to_be_visible()
    page.get_by_role("button", name="Clear the filter").click()
    saved(page, "0 of 37 answered")
    assert "?" not in page.url
    page.locator("#filters [name=order]").select_option("uncertain")
    expect(page.locator("#probability")).to_have_text(re.compile("^(4[5-9]|5[0-5]) %"))


def test_all_done_and_the_skipped_ones_again(site: Site):
    page = site.open("/?category=apple&low=0.8")
    question(page)
    count = int(page.locator("#progress-text").inner_text().split()[2])
    page.keyboard.press("s")
    for _ in range(count - 1):
        page.keyboard.press("y")
    expect(page.get_by_role("heading", name="Done with this filter")).to_be_visible()
    page.get_by_role("button", name="Look at the skipped ones").click()
    expect(page.locator("#skip")).to_have_attribute("aria-current", "true")
    page.keyboard.press("n")
    expect(page.get_by_role("heading", name="No more of these")).to_be_visible()
    page.keyboard.press("u")
    assert "apple" in question(page)


def test_bulk_with_preview_and_one_undo(site: Site):
    page = site.open()
    question(page)
    page.get_by_role("button", name="Accept many").click()
    page.get_by_label("Level").fill("0.8")
    accept = page.locator("#bulk-do")
    expect(accept).to_have_text("Answer yes to 7")
    expect(page.locator("#bulk-sample li")).to_have_count(7)
    page.get_by_label("Level").press("Enter")  # does not close it
    expect(page.locator("#bulk")).to_be_visible()
    accept.click()
    saved(page, "7 of 37 answered")
    page.keyboard.press("u")
    expect(page.locator("#status")).to_contain_text("Took back 7 answers")
    saved(page, "0 of 37 answered")


def test_two_tabs(site: Site):
    one, two = site.open(), site.open()
    first, second = question(one), question(two)
    assert first != second
    for page in (one, two, one, two):
        page.keyboard.press("y")
        question(page)
    all_sent(one)
    all_sent(two)
    one.keyboard.press("u")  # takes back its own
    expect(one.locator("#status")).to_contain_text("Took back")
    assert site.states()["yes"] == 3
    units = site.review.decisions.history()
    assert len({unit.tab for unit in units}) == 2
    assert [unit.undone is not None for unit in units] == [False, True, False, False]


def test_an_answer_given_elsewhere_meanwhile_is_told(site: Site):
    page = site.open()
    question(page)
    item = site.review.next(*_same_question(page))[0]
    site.review.answer(item["image"], item["category"], 2, "somebody", "their-request")
    page.keyboard.press("y")
    expect(page.locator("#status")).to_contain_text("had been answered no elsewhere")
    assert site.review.item(item["row"])["state"] == "yes"


def _same_question(page: Page):
    from fewtags.review.filters import Filters

    return Filters(), "confident", [0], 1, page.evaluate("sessionStorage.getItem('fewtags.tab')")


def test_nothing_is_lost_while_the_server_is_gone(browser: Browser, tmp_path: Path):
    place, review = make_review(tmp_path)
    port = free_port()
    page = browser.new_context().new_page()
    with served(make_app(place, review), port) as url:
        page.goto(url)
        question(page)
        page.keyboard.press("y")
        saved(page, "1 of 37 answered")
        all_sent(page)
    page.keyboard.press("y")
    page.keyboard.press("n")
    expect(page.get_by_role("alert")).to_contain_text("2 answers are waiting here")
    assert len(review.decisions.history()) == 1
    review.decisions.close()
    place, again = make_review(tmp_path)
    with served(make_app(place, again), port):
        expect(page.get_by_role("alert")).to_be_hidden(timeout=20000)
        saved(page, "3 of 37 answered")
        from fewtags.review.filters import Filters

        assert again.progress(Filters()) == {"total": 37, "open": 34, "yes": 2, "no": 1, "skipped": 0}
        page.context.close()
    again.decisions.close()


def test_a_missing_image_can_be_skipped(site: Site, tmp_path: Path):
    site.forgiven = ("Failed to load resource",)  # Chromium notes each failed image
    for path in (tmp_path / "data" / "images").iterdir():
        path.unlink()
    page = site.open()
    question(page)
    expect(page.locator("#missing")).to_contain_text("cannot be shown")
    page.keyboard.press("s")
    saved(page, "0 of 37 answered, 1 skipped")


def test_the_attention_map(site: Site):
    page = site.open()
    question(page)
    expect(page.locator("#heat")).to_be_visible()
    assert page.evaluate(PAINTED) == [255, 0]  # dark at the top left, clear at the bottom right, where it looked
    page.keyboard.press("a")
    expect(page.locator("#heat")).to_be_hidden()
    expect(page.locator("#heat-button")).to_have_attribute("aria-pressed", "false")
    page.reload()
    question(page)
    expect(page.locator("#heat")).to_be_hidden()  # remembered
    page.locator("#heat-button").click()
    expect(page.locator("#heat")).to_be_visible()


def test_without_attention_there_is_no_switch(browser: Browser, tmp_path: Path):
    place, review = make_review(tmp_path)
    with served(make_app(place, review, attention=False), free_port()) as url:
        page = browser.new_context().new_page()
        page.goto(url)
        question(page)
        page.wait_for_load_state("networkidle")
        expect(page.locator("#heat-tools")).to_be_hidden()
        page.context.close()
    review.decisions.close()


def test_a_phone_has_everything_in_reach(site: Site):
    page = site.open(**PHONE)
    question(page)
    width = page.evaluate("document.documentElement.scrollWidth")
    assert width <= 390
    for name in ("#yes", "#no", "#skip"):
        box = page.locator(name).bounding_box()
        assert box["height"] >= 60
        assert box["y"] > 844 * 0.75  # under the thumb
        assert box["y"] + box["height"] <= 844
    frame = page.locator("#frame").bounding_box()
    assert frame["width"] > 250
    page.locator("#yes").tap()
    saved(page, "1 of 37 answered")
    page.locator("#undo").tap()
    saved(page, "0 of 37 answered")


def test_everything_is_reached_with_the_keyboard_and_named(site: Site):
    page = site.open()
    question(page)
    expect(page.locator("#heat-button")).to_be_visible()  # it comes with the heat map, after the question
    reached = []
    for _ in range(18):
        page.keyboard.press("Tab")
        reached.append(page.evaluate("document.activeElement.id || document.activeElement.textContent.trim()"))
    assert [name for name in reached if name in ("no", "skip", "yes")] == ["no", "skip", "yes"]
    assert {"filters-button", "bulk-button", "export-button", "help-button", "heat-button", "undo"} <= set(reached)
    for role in ("banner", "main", "navigation", "progressbar"):
        expect(page.get_by_role(role).first).to_be_attached()
    assert page.evaluate(UNNAMED) == []
    assert page.locator("#image").get_attribute("alt")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_enough_contrast(site: Site, scheme: str):
    page = site.open(color_scheme=scheme)
    question(page)
    page.keyboard.press("y")
    assert page.evaluate(CONTRAST) == []


def test_export_and_history(site: Site, tmp_path: Path):
    page = site.open()
    question(page)
    page.keyboard.press("y")
    page.get_by_role("button", name="Export").click()
    expect(page.locator("#exported-text")).to_contain_text("1 answer is in")
    assert (tmp_path / "completion" / "reviewed.csv").is_file()
    page.get_by_role("button", name="Close").click()
    page.get_by_role("link", name="History").click()
    page.get_by_role("button", name="Take back").click()
    expect(page.locator("tr.undone")).to_have_count(1)
    assert site.states()["open"] == 37


def test_letters_typed_into_a_field_are_no_answers(site: Site):
    page = site.open()
    before = question(page)
    page.get_by_role("button", name="Accept many").click()
    page.get_by_label("Level").press("y")
    page.keyboard.press("Escape")
    page.keyboard.press("f")
    page.get_by_label("Category").press("n")
    page.keyboard.press("Control+y")
    assert question(page) == before
    assert site.states()["open"] == 37
