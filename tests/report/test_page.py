from html.parser import HTMLParser

import pytest

from fewtags.errors import UserError
from fewtags.report import comparison_report, run_report
from tests.report.fabricate import CATEGORIES, write_examples, write_run

VOID = {"meta", "img", "br", "path", "use", "link", "wbr"}


class Page(HTMLParser):
    """What a test asks of a page: its elements, its text, and that every tag is closed."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.text, self.open = [], [], []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)

    def all(self, tag):
        return [attributes for name, attributes in self.elements if name == tag]

    def said(self):
        return " ".join(" ".join(self.text).replace("\N{NARROW NO-BREAK SPACE}", " ").split())


@pytest.fixture
def hst(tmp_path):
    return write_examples(write_run(tmp_path / "hst"))


@pytest.fixture
def plain(tmp_path):
    run = write_run(tmp_path / "plain", "plain", 55.0)
    return write_examples(run, filled=False, attention=False)


def read(path):
    return Page(path.read_text(encoding="utf-8"))


def test_comparison_shows_everything_once(hst, plain, tmp_path):
    out = comparison_report([plain, hst], tmp_path / "deep" / "report.html", "Demo <1>")
    page = read(out)
    text = page.said()
    assert "HST reaches 61.2 mAP with 10 % of the labels, 6.2 points ahead of plain (55.0)." in text
    for heading in ("Results", "Thresholds over time", "Labels filled in", "Example images", "Loss terms"):
        assert heading in text
    assert "Demo <1>" in text
    assert "What occurs together in one image" in text
    for category in CATEGORIES:
        assert category in text
    assert "✓ cup intra 0.93 · cross 0.81" in text
    assert "✗ laptop cross 0.77" in text
    assert "1,942" in text


def test_pages_need_nothing_from_outside(hst, plain, tmp_path):
    for out in (comparison_report([plain, hst], tmp_path / "r.html"), run_report(hst)):
        page = read(out)
        sources = [image["src"] for image in page.all("img")]
        assert sources
        assert all(source.startswith("data:image/") for source in sources)
        assert page.all("link") == page.all("script") == []
        assert str(tmp_path) not in out.read_text(encoding="utf-8")


def test_pages_are_accessible(hst, plain, tmp_path):
    text = comparison_report([plain, hst], tmp_path / "r.html").read_text(encoding="utf-8")
    page = Page(text)
    assert all(image.get("alt") for image in page.all("img"))
    assert all(svg.get("aria-label") for svg in page.all("svg"))
    assert len(page.all("caption")) == len(page.all("table"))
    assert all(cell.get("scope") for cell in page.all("th"))
    assert page.all("html")[0]["lang"] == "en"
    assert "prefers-color-scheme: dark" in text
    assert "width=device-width" in text
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))


def test_run_report_is_written_into_the_run(hst):
    out = run_report(hst)
    assert out == hst / "report.html"
    text = read(out).said()
    assert "HST on scenes" in text
    assert "says yes from" in text
    assert "gain" not in text


def test_a_run_with_metrics_alone_has_a_report(tmp_path):
    (tmp_path / "metrics.json").write_text('{"mAP": 41.5, "method": "plain", "known": 1.0}')
    text = read(run_report(tmp_path)).said()
    assert "plain reaches 41.5 mAP with all given labels." in text
    for heading in (
        "Thresholds over time",
        "Labels filled in",
        "Example images",
        "Average precision per category",
    ):
        assert heading not in text


def test_names_are_escaped(tmp_path):
    run = write_run(tmp_path / "a", categories=["<script>alert(1)</script>", "b"])
    assert read(run_report(run)).all("script") == []


def test_without_truth_nothing_is_called_right(tmp_path):
    run = write_examples(write_run(tmp_path / "a"), truth=False)
    (run / "history.csv").write_text("epoch,pseudo/intra_made,threshold/intra\n1,0,0.9\n2,10,0.8\n")
    text = read(run_report(run)).said()
    assert "the truth is not available" in text
    assert "? cup" in text
    assert "what passes them" not in text


def test_only_the_best_rival_is_bold(hst, plain, tmp_path):
    full = write_run(tmp_path / "full", "full_labels", 71.0, known=1.0)
    page = read(comparison_report([plain, hst, full], tmp_path / "r.html"))
    text = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert '<td class="best">61.2</td>' in text
    assert '<td class="best">71.0</td>' not in text
    assert "trained on all labels: 71.0" in page.said()


def test_many_categories_stand_in_two_columns(tmp_path):
    names = [f"category {i}" for i in range(41)]
    runs = [write_run(tmp_path / m, m, ap, categories=names) for m, ap in [("hst", 60.0), ("plain", 50.0)]]
    page = read(comparison_report(runs, tmp_path / "r.html"))
    assert [t.get("class") for t in page.all("table")].count("categories") == 2
    assert "category 40" in page.said()


def test_settings_that_differ_are_listed(hst, plain, tmp_path):
    text = read(comparison_report([plain, hst], tmp_path / "r.html")).said()
    assert "Where the models' settings differ" in text


def test_folders_and_formats_are_named_without_their_path(tmp_path):
    for spec, shown in [
        ("/home/me/photos", "photos"),
        ("voc2007:/data/VOC", "voc2007"),
        ("scenes:train=9", "scenes"),
    ]:
        run = write_run(tmp_path / shown, data=spec)
        assert f"HST on {shown}" in read(run_report(run)).said()


def test_a_comparison_needs_two_runs(hst, tmp_path):
    with pytest.raises(UserError, match="needs at least two runs"):
        comparison_report([hst], tmp_path / "r.html")
