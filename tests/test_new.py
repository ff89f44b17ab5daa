import pytest

from fewtags.data import open_data
from fewtags.errors import UserError
from fewtags.new import new_template
from tests.labels.formats.make import pictures, text


def test_a_row_per_image_and_nothing_known(tmp_path):
    pictures(tmp_path, ["b.jpg", "a, b.png", "deep/c.jpg"])
    text(tmp_path / "readme.txt", "not an image")
    file = new_template(tmp_path, ["dog", " hot dog "])
    assert file == tmp_path / "labels.csv"
    assert file.read_text() == 'image,dog,hot dog\n"a, b.png",,\nb.jpg,,\ndeep/c.jpg,,\n'
    table = open_data(str(tmp_path)).table
    assert table.categories == ("dog", "hot dog")
    assert not table.known.any()


def test_categories_can_wait(tmp_path):
    pictures(tmp_path, ["a.jpg", "b.jpg"])
    assert new_template(tmp_path, []).read_text() == "image\na.jpg\nb.jpg\n"
    with pytest.raises(UserError, match="no category: write one column for each after 'image'"):
        open_data(str(tmp_path))


@pytest.mark.parametrize("name", ["labels.csv", "labels.parquet"])
def test_never_overwrites(tmp_path, name):
    pictures(tmp_path, ["a.jpg"])
    text(tmp_path / name, "mine")
    with pytest.raises(UserError, match="is there already; it is left as it is"):
        new_template(tmp_path, ["dog"])
    assert (tmp_path / name).read_text() == "mine"


def test_mistakes(tmp_path):
    with pytest.raises(UserError, match="there is no such folder"):
        new_template(tmp_path / "none", ["dog"])
    with pytest.raises(UserError, match="there are no images"):
        new_template(tmp_path, ["dog"])
    pictures(tmp_path, ["a.jpg"])
    with pytest.raises(UserError) as caught:
        new_template(tmp_path, ["dog", "split", "dog", " "])
    message = str(caught.value)
    assert "'split' is the name of another column" in message
    assert "'dog' is named twice" in message
    assert "number 4 is blank" in message
    assert not (tmp_path / "labels.csv").exists()
