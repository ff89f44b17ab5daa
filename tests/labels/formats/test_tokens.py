import pytest

from fewtags.errors import UserError
from fewtags.labels.formats.tokens import DEFAULT, Tokens


def test_default_is_one_zero_blank():
    assert Tokens.parse(None) == Tokens.parse(DEFAULT) == Tokens()
    assert Tokens().meaning == {"1": 1, "0": -1, "": 0}
    assert Tokens().written == {1: "1", -1: "0", 0: ""}


def test_others_and_several_of_one_meaning():
    tokens = Tokens.parse("present=yes|y, absent=no, unknown=|-1")
    assert tokens.meaning == {"yes": 1, "y": 1, "no": -1, "": 0, "-1": 0}
    assert tokens.written == {1: "yes", -1: "no", 0: ""}
    assert Tokens.parse(str(tokens)) == tokens


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("present=1,absent=0", "unknown is not given"),
        ("present=1,absent=0,unknown", "'unknown' is not understood"),
        ("present=1,absent=0,maybe=?", "'maybe=\\?' is not understood"),
        ("present=1,present=2,absent=0,unknown=", "'present=2' is not understood"),
        ("present=1,absent=0,unknown=0", "'0' has two meanings"),
        ("", "'' is not understood"),
    ],
)
def test_nothing_is_guessed(text, words):
    with pytest.raises(UserError, match=words):
        Tokens.parse(text)
