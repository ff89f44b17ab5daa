"""What the writers of public formats share: checks that a format can say what the table says.

They write labels alone; images are not copied. Read again, training images come first.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from fewtags.errors import Problems, UserError
from fewtags.labels.table import ABSENT, UNKNOWN, LabelTable

WORDS = {UNKNOWN: "unknown", ABSENT: "absent"}


def require_sayable(table: LabelTable, form: str, value: int, instead: str) -> None:
    """No entry may have a value that `form` has no way to write."""
    if count := int((table.values == value).sum()):
        entries = "1 entry is" if count == 1 else f"{count} entries are"
        raise UserError(f"{form} cannot say that a label is {WORDS[value]}: {entries}; write {instead} instead")


def require_images_like(table: LabelTable, form: str, layout: Mapping[str, str], name: str = "[^/]+") -> None:
    """`layout`: for each split, the regular expression of its image paths, with NAME for the expression `name`."""
    problems = Problems(f"cannot be written as {form}")
    for split in layout:
        if split not in table.splits:
            problems.add(f"there is no {split} image; it needs some of each split")
    for image, split in zip(table.images, table.splits, strict=True):
        if not is_line(image):
            problems.add(f"{split} image {image!r} has blanks around it or is several lines; rename it")
        elif not re.fullmatch(layout[split].replace("NAME", name), image):
            shown = layout[split].replace("\\", "").replace("?i:", "")
            problems.add(f"{split} image {image!r} is not named like {shown}; rename it, or write a folder")
    require_once(table.images, "image", problems)
    problems.raise_if_any()


def require_names(table: LabelTable, form: str) -> None:
    """Names are read a line each, without the blanks around them."""
    problems = Problems(f"cannot be written as {form}")
    for name in table.categories:
        if not is_line(name):
            problems.add(f"category {name!r} is blank, has blanks around it or is several lines; rename it")
    require_once(table.categories, "category", problems)
    problems.raise_if_any()


def require_once(names: Sequence[str], what: str, problems: Problems) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            problems.add(f"{what} {name!r} is there twice; rename one")
        seen.add(name)


def is_line(text: str) -> bool:
    return text.splitlines() == [text] and text == text.strip() != ""


def require_named(categories: Sequence[str], problems: Problems) -> None:
    """Of categories as they were read: every one has a name, and no other has the same."""
    if not categories:
        problems.add("there is no category")
    for number, name in enumerate(categories, start=1):
        if not name.strip():
            problems.add(f"category {number} has no name")
    require_once(categories, "category", problems)
