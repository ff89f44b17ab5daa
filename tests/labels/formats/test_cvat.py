import json
from dataclasses import replace

import numpy as np
import pytest

from fewtags.errors import UserError
from fewtags.labels.formats import cvat
from fewtags.labels.formats.safe_xml import read_xml
from fewtags.labels.table import LabelTable
from tests.labels.formats.make import pictures, text

META = """<version>1.1</version><meta><project><labels>
<label><name>dog</name><type>tag</type></label><label><name>straße</name><type>tag</type></label>
</labels></project></meta>"""
ABSENT = '<attribute name="state">absent</attribute>'
IMAGES = f"""<image id="0" name="a b.jpg" subset="Train" width="8" height="8">
<tag label="dog" source="manual"></tag>
<tag label="straße" source="auto">{ABSENT}</tag></image>
<image id="1" name="c.jpg" subset="Validation" width="8" height="8"/>"""


def put(root, images=IMAGES, meta=META):
    return text(root / "annotations.xml", f"<annotations>\n{meta}{images}\n</annotations>")


@pytest.fixture
def root(tmp_path):
    pictures(tmp_path, ["images/Train/a b.jpg", "images/c.jpg"])
    put(tmp_path)
    return tmp_path


def test_tags_states_and_subsets(root):
    table, image_root, notes = cvat.read(root)
    assert (image_root, notes) == (root, ())
    assert table.images == ("images/Train/a b.jpg", "images/c.jpg")  # a project's images are below their subset
    assert table.categories == ("dog", "straße")
    assert table.values.tolist() == [[1, -1], [0, 0]]
    assert table.splits == ("train", "test")
    assert table.source.tolist() == [["given", "completed"], ["", ""]]


def test_without_meta_the_labels_found_are_the_categories(root):
    put(root, meta="")
    assert cvat.read(root / "annotations.xml").table.categories == ("dog", "straße")


def test_a_task_has_no_subset(root):
    put(root, '<image id="0" name="c.jpg"><tag label="dog"/><box label="dog"/><mask label="dog"/></image>')
    table, _, notes = cvat.read(root, seed=3)
    assert table.values.tolist() == [[1, 0]]
    assert notes[0] == "not every image has a subset: a seeded 80/20 split (seed 3)"
    assert notes[1] == "2 boxes and other shapes are left out: only tags are read"


def test_the_first_folder_of_the_name_is_as_good_as_a_subset(root):
    pictures(root, ["images/train/1.jpg", "images/test/1.jpg"])
    put(root, '<image id="0" name="train/1.jpg"/><image id="1" name="test/1.jpg"/>')
    assert cvat.read(root).table.splits == ("train", "test")


@pytest.mark.parametrize(
    ("images", "words"),
    [
        ('<image name="c.jpg">\n<tag label="dgo"/>\n<tag label="dgo"/></image>',
         r"label 'dgo' is not declared in <labels> \(2 times, first in line 5\)"),
        ('<image name="c.jpg"><tag label="dog"><attribute name="state">maybe</attribute></tag></image>',
         "line 4: state 'maybe' of 'dog' is neither present nor absent"),
        (f'<image name="c.jpg"><tag label="dog"/><tag label="dog">{ABSENT}</tag></image>',
         r"line 4: 'dog' is present and absent in c.jpg"),
        ('<image name="none.jpg"/>', r"line 4: image .*images/none.jpg is missing"),
        ('<image name="../c.jpg"/>', r"line 4: image '../c.jpg' is outside the folder"),
        ('<image name="c.jpg" subset="../.."/>', r"line 4: image 'c.jpg' is outside the folder"),
        ('<image name="c.jpg"/><image name="c.jpg"/>', r"image 'images/c.jpg' is there twice"),
        ("", "there is no <image>$"),
        ('<track id="0" label="dog"/>', r"there is no <image> \(it has tracks: export as `CVAT for images`"),
        ("<image", "line 5, column 1: not readable as XML"),
    ],
)  # fmt: skip
def test_what_cannot_be_read(root, images, words):
    put(root, images)
    with pytest.raises(UserError, match=words):
        cvat.read(root)


def test_other_files(root):
    text(root / "annotations.xml", "<annotation/>")
    with pytest.raises(UserError, match="not CVAT for images: it begins with <annotation>, not <annotations>"):
        cvat.read(root)
    put(root, '<image name="c.jpg"/>', meta="")
    with pytest.raises(UserError, match="there is neither a label in <labels> nor a <tag>"):
        cvat.read(root)
    text(root / "annotations.xml", '<!DOCTYPE a [<!ENTITY b "c">]><annotations>&b;</annotations>')
    with pytest.raises(UserError, match="has a document type"):
        cvat.read(root)
    (root / "annotations.xml").unlink()
    with pytest.raises(UserError, match=r"annotations.xml: there is no such file"):
        cvat.read(root)


def a_table():
    values = np.array([[1, -1], [0, 0]], np.int8)
    return LabelTable(("images/train/a.jpg", "images/test/b.jpg"), ("dog", "cat"), values, ("train", "test"))


def test_what_is_written(tmp_path):
    source = np.array([["human", "completed"], ["", ""]], dtype=object)
    cvat.write(replace(a_table(), source=source), tmp_path, sizes=[(640, 480), (5, 6)])
    root = read_xml(tmp_path / "annotations.xml").root
    image, other = root.findall("image")
    assert image.attrib == {"id": "0", "name": "train/a.jpg", "subset": "train", "width": "640", "height": "480"}
    assert [tag.attrib for tag in image] == [
        {"label": "dog", "source": "manual"},
        {"label": "cat", "source": "auto"},
    ]
    assert [tag.findtext("attribute") for tag in image] == ["present", "absent"]
    assert len(other) == 0
    assert root.findtext("version") == "1.1"
    assert [label.findtext("type") for label in root.iter("label")] == ["tag", "tag"]
    state = {"name": "state", "mutable": False, "input_type": "select", "default_value": "present"}
    first = json.loads((tmp_path / "labels.json").read_text())[0]
    assert first == {"name": "dog", "type": "tag", "attributes": [state | {"values": ["present", "absent"]}]}


def test_a_state_changed_by_hand_counts_as_given(tmp_path):
    source = np.array([["completed", "completed"], ["", ""]], dtype=object)
    cvat.write(replace(a_table(), source=source), tmp_path)
    pictures(tmp_path, a_table().images)
    file = tmp_path / "annotations.xml"
    file.write_text(file.read_text().replace(">absent</attribute>", ">present</attribute>"))
    table = cvat.read(tmp_path).table
    assert table.values[0].tolist() == [1, 1]
    assert table.source[0].tolist() == ["completed", "given"]


def test_an_export_of_some_images_keeps_their_sources(tmp_path):
    source = np.array([["completed", "completed"], ["", ""]], dtype=object)
    values = np.array([[1, -1], [1, 1]], np.int8)
    cvat.write(replace(a_table(), values=values, source=np.repeat(source[:1], 2, axis=0)), tmp_path)
    pictures(tmp_path, a_table().images)
    put(tmp_path, '<image name="test/b.jpg"><tag label="dog"/></image>', meta="")
    table = cvat.read(tmp_path).table
    assert (table.images, table.source.tolist()) == (("images/test/b.jpg",), [["completed"]])


def test_what_cannot_be_written(tmp_path):
    with pytest.raises(UserError, match=r"'a\\x01' has a letter that XML cannot hold; rename it"):
        cvat.write(replace(a_table(), categories=("a\x01", "cat")), tmp_path)
    with pytest.raises(UserError, match="category ' ' is blank"):
        cvat.write(replace(a_table(), categories=(" ", "cat")), tmp_path)
    assert not list(tmp_path.iterdir())
