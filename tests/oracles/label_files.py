"""What label files say, read in the plainest way: image → category → +1 or -1. Unknown entries are not there.

Anything unexpected raises, whatever: a reader that takes such a file for good is wrong.
"""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pyarrow.parquet as pq

Said = dict[str, dict[str, int]]
CELLS = {"1": 1, "0": -1, "": 0}
STATES = {"present": 1, "absent": -1}


def rows_of(path: Path, errors: str = "strict") -> list[list[str]]:
    text = path.read_bytes().decode("utf-8-sig", errors)
    return [row for row in csv.reader(io.StringIO(text, newline=""), strict=True) if row]


def strict_json(path: Path) -> Any:
    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        assert len(dict(pairs)) == len(pairs)
        return dict(pairs)

    return json.loads(path.read_bytes().decode("utf-8-sig"), object_pairs_hook=once)


def xml(path: Path) -> ElementTree.Element:
    content = path.read_bytes()
    assert b"<!DOCTYPE" not in content
    return ElementTree.fromstring(content)


def a_file(root: Path, image: str) -> str:
    assert (root / image).is_file()
    assert (root / image).resolve().is_relative_to(root.resolve())
    return image


def text_lines(path: Path) -> list[str]:
    return [line.strip() for line in path.read_bytes().decode("utf-8-sig").splitlines() if line.strip()]


def table_says(root: Path, header: list[str], rows: list[list[str]]) -> Said:
    assert len(set(header)) == len(header) > 1
    assert all(header)
    assert not any("\0" in name for name in header)
    assert rows
    assert set(header) - {"image", "split"}
    said: Said = {}
    files = set()
    for row in rows:
        assert len(row) == len(header)
        cells = dict(zip(header, row, strict=True))
        image = a_file(root, cells.pop("image"))
        assert "split" not in cells or cells.pop("split").strip() in ("train", "test")
        files.add((root / image).resolve())
        said[image] = {name: CELLS[cell.strip()] for name, cell in cells.items() if CELLS[cell.strip()]}
    assert len(files) == len(rows)
    return said


def from_csv(root: Path) -> Said:
    header, *rows = rows_of(root / "labels.csv")
    return table_says(root, [name.strip() for name in header], rows)


def from_parquet(root: Path) -> Said:
    columns = pq.read_table(root / "labels.parquet").to_pydict()
    rows = [["" if cell is None else str(cell) for cell in row] for row in zip(*columns.values(), strict=True)]
    return table_says(root, list(columns), rows)


def from_coco(root: Path) -> Said:
    files = {place: root / "annotations" / f"instances_{place}.json" for place in ("train", "test")}
    contents = {place: strict_json(file) for place, file in files.items()}
    return coco_says(root, contents)


def from_coco2014(root: Path) -> Said:
    files = {place: root / "annotations" / f"instances_{place}.json" for place in ("train2014", "val2014")}
    contents = {place: strict_json(file) for place, file in files.items()}
    for content in contents.values():
        for image in content["images"]:
            image.setdefault("neg_category_ids", [])
    return coco_says(root, contents, always_said=True)


def coco_says(root: Path, contents: dict[str, Any], always_said: bool = False) -> Said:
    partial = not always_said and any("neg_category_ids" in i for c in contents.values() for i in c["images"])
    said: Said = {}
    for place, content in contents.items():
        names = {category["id"]: category["name"] for category in content["categories"]}
        assert len(names) == len(set(names.values())) == len(content["categories"])
        paths = {image["id"]: a_file(root, f"{place}/{image['file_name']}") for image in content["images"]}
        assert len(paths) == len(set(paths.values())) == len(content["images"])
        for image in content["images"]:
            row = {} if partial else dict.fromkeys(names.values(), -1)
            said[paths[image["id"]]] = row | {names[n]: -1 for n in image.get("neg_category_ids") or []}
        for item in content["annotations"]:
            said[paths[item["image_id"]]][names[item["category_id"]]] = 1
    return said


def from_fiftyone(root: Path) -> Said:
    said: Said = {}
    for split in ("train", "test"):
        folder = root / split
        if split == "test" and not (folder / "labels.json").is_file():
            continue
        files = {f.relative_to(folder / "data").with_suffix("").as_posix(): f for f in (folder / "data").glob("*")}
        for image in files.values():
            said[image.relative_to(root).as_posix()] = {}
        for name, value in (("labels.json", 1), ("absent.json", -1)):
            content = strict_json(folder / name)
            classes = content.get("classes") or []
            for key, targets in content["labels"].items():
                row = said[files[key].relative_to(root).as_posix()]
                listed = [] if targets is None else targets if isinstance(targets, list) else [targets]
                for target in listed:
                    label = target["label"] if isinstance(target, dict) else target
                    category = classes[label] if type(label) is int and label >= 0 else label
                    assert isinstance(category, str)
                    assert row.setdefault(category, value) == value
    return said


def from_label_studio(root: Path) -> Said:
    said: Said = {}
    for task in strict_json(root / "tasks.json"):
        record = task["data"].get("fewtags")
        record = record if isinstance(record, dict) else {}
        image = record.get("image", task["data"].get("image"))
        places = [image, task["data"].get("image")]
        found = next(place for place in places if isinstance(place, str) and (root / place).is_file())
        assert a_file(root, found) not in said
        said[found] = annotated(task.get("annotations"), record)
    return said


def annotated(annotations: Any, record: dict[str, Any]) -> dict[str, int]:
    valid = [a for a in annotations or [] if isinstance(a, dict) and not a.get("was_cancelled")]
    if not valid:
        return {name: value for word, value in STATES.items() for name in record.get(word, [])}
    dates = [str(a.get("updated_at") or a.get("created_at") or "") for a in valid]
    newest = valid[max(range(len(valid)), key=lambda place: (dates[place], place))]
    row: dict[str, int] = {}
    for result in newest.get("result") or []:
        if isinstance(result, dict) and result.get("type") == "choices" and isinstance(result.get("value"), dict):
            for name in result["value"].get("choices") or []:
                row[str(name)] = -1 if result.get("from_name") == "absent" else 1
    return row


def from_cvat(root: Path) -> Said:
    said: Said = {}
    for image in xml(root / "annotations.xml").iter("image"):
        name, subset = image.get("name", ""), image.get("subset", "")
        places = [f"images/{name}", f"images/{subset}/{name}", name]
        row = said.setdefault(a_file(root, next(place for place in places if (root / place).is_file())), {})
        assert not row
        for tag in image.iter("tag"):
            states = [a.text for a in tag.iter("attribute") if a.get("name") == "state"]
            value = STATES[(states[0] or "").strip()] if states else 1
            assert row.setdefault(tag.attrib["label"], value) == value
    return said


def from_open_images(root: Path) -> Said:
    names = {row[0]: row[1].strip() for row in rows_of(root / "class-descriptions.csv") if row[0] != "LabelName"}
    repeated = Counter(names.values())
    names = {label: name if repeated[name] == 1 else f"{name} ({label})" for label, name in names.items()}
    said: Said = {}
    for split in ("train", "test"):
        files = {file.stem: f"{split}/{file.name}" for file in (root / split).glob("*.png")}
        said |= {image: {} for image in files.values()}
        header, *rows = rows_of(root / f"{split}-annotations-human-imagelabels.csv", "replace")
        for row in rows:
            assert len(row) == len(header)
            cells = dict(zip(header, row, strict=True))
            if cells["ImageID"] in files and cells["LabelName"] in names:
                value = {"1": 1, "1.0": 1, "0": -1, "0.0": -1}[cells["Confidence"]]
                known = said[files[cells["ImageID"]]].setdefault(names[cells["LabelName"]], value)
                assert known == value
    return said


def from_tags(root: Path) -> Said:
    names = text_lines(root / "names.txt")
    assert len(set(names)) == len(names)
    said: Said = {}
    for file in ("train.txt", "test.txt"):
        for line in text_lines(root / file):
            image, comma, numbers = line.rpartition(",")
            assert comma
            assert a_file(root, image.strip()) not in said
            said[image.strip()] = {names[int(number)]: 1 for number in numbers.split()}
    return said


def from_voc(root: Path) -> Said:
    said: Said = {}
    for name in ("trainval", "test"):
        for line in text_lines(root / "ImageSets" / "Main" / f"{name}.txt"):
            image = line.split()[0]
            objects = xml(root / "Annotations" / f"{image}.xml")
            assert objects.tag == "annotation"
            found = [
                ((o.findtext("name") or "").strip(), (o.findtext("difficult") or "").strip())
                for o in objects.findall("object")
            ]
            assert all(category in VOC and difficult in ("", "0", "1") for category, difficult in found)
            sure = {category for category, difficult in found if difficult != "1"}
            doubtful = {category for category, _ in found} - sure
            path = a_file(root, f"JPEGImages/{image}.jpg")
            assert path not in said
            said[path] = {category: 1 if category in sure else -1 for category in VOC if category not in doubtful}
    return said


VOC = [
    "aeroplane",
    "bicycle",
    "bird",
    "boat",
    "bottle",
    "bus",
    "car",
    "cat",
    "chair",
    "cow",
    "diningtable",
    "dog",
    "horse",
    "motorbike",
    "person",
    "pottedplant",
    "sheep",
    "sofa",
    "train",
    "tvmonitor",
]


def from_vg200(root: Path) -> Said:
    names = text_lines(root / "categories.txt")[:200] if (root / "categories.txt").is_file() else []
    names = names or [f"category {number}" for number in range(200)]
    index = strict_json(root / "vg_category_200_labels_index.json")
    said: Said = {}
    for file in ("train_list_500.txt", "test_list_500.txt"):
        for image in text_lines(root / file):
            path = a_file(root, f"VG_100K/{image}")
            assert path not in said
            assert all(type(number) is int and number >= 0 for number in index[image])
            said[path] = {name: 1 if number in index[image] else -1 for number, name in enumerate(names)}
    return said


READERS = {
    "csv": from_csv,
    "parquet": from_parquet,
    "coco": from_coco,
    "coco2014": from_coco2014,
    "fiftyone": from_fiftyone,
    "label-studio": from_label_studio,
    "cvat": from_cvat,
    "openimages": from_open_images,
    "tags": from_tags,
    "voc": from_voc,
    "vg200": from_vg200,
}
