import pytest

from fewtags.errors import UserError
from fewtags.labels.formats.safe_xml import read_xml
from tests.labels.formats.make import text

LAUGHS = '<?xml version="1.0"?>\n<!DOCTYPE lolz [<!ENTITY a "ha">'
LAUGHS += "".join(f'<!ENTITY {n} "{10 * f"&{o};"}">' for o, n in zip("abcdefghi", "bcdefghij", strict=True))
LAUGHS += "]>\n<lolz>&j;</lolz>"
OUTSIDE = '<!DOCTYPE a [<!ENTITY secret SYSTEM "file:///etc/hostname">]><a>&secret;</a>'


def test_reads_elements_with_their_lines(tmp_path):
    parsed = read_xml(text(tmp_path / "a.xml", '<a>\n <b name="é">x&amp;y</b>\n <b/></a>'))
    first, second = parsed.root.findall("b")
    assert (first.get("name"), first.text) == ("é", "x&y")
    assert [parsed.lines[item] for item in (parsed.root, first, second)] == [1, 2, 3]


@pytest.mark.parametrize(("content", "line"), [(LAUGHS, 2), (OUTSIDE, 1), ("<!DOCTYPE a><a/>", 1)])
def test_a_document_type_is_refused_before_anything_is_expanded(tmp_path, content, line):
    with pytest.raises(UserError, match=rf"a.xml: line {line}: has a document type .* remove it"):
        read_xml(text(tmp_path / "a.xml", content))


def test_what_is_no_xml(tmp_path):
    with pytest.raises(UserError, match=r"a.xml: line 2, column 6: not readable as XML \(mismatched tag\)"):
        read_xml(text(tmp_path / "a.xml", "<a><b>\n   </c></a>"))
    with pytest.raises(UserError, match=r"shown: the file is empty"):
        read_xml(text(tmp_path / "a.xml", " \n"), "shown")
    with pytest.raises(UserError, match=r"none.xml: there is no such file"):
        read_xml(tmp_path / "none.xml")
