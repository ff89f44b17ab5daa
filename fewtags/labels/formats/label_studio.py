"""Label Studio: tasks.json with one task per image, config.xml with the labelling interface, and the images.

The interface has two groups of choices, `present` and `absent`; what is chosen in neither is unknown. A task keeps
in `data.fewtags` what was known when it was written, and that is what an image without an annotation has when it
is read again. An annotation, the newest if there are several, is a person's word on the whole image and replaces
it: what says the same as a label given before stays given, everything else has the source `human`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import SplitResult, parse_qs, unquote, urlsplit

from fewtags.errors import Problems, UserError
from fewtags.images.loading import SUFFIXES
from fewtags.labels.formats.entries import VALUES, Entry, Row, count_unknown, is_number, table_of
from fewtags.labels.formats.loaded import Loaded, is_file, is_inside, only_json, read_json
from fewtags.labels.formats.safe_xml import read_xml
from fewtags.labels.formats.writing import require_named, require_once
from fewtags.labels.split import TEST, TRAIN, seeded_split
from fewtags.labels.table import GIVEN, HUMAN

TASKS, CONFIG = "tasks.json", "config.xml"
RECORD = "fewtags"
Said = Mapping[str, int]
"""Category → PRESENT or ABSENT, as an annotation says it."""


class Task(NamedTuple):
    place: str
    """How errors call it."""
    address: str
    """The image as Label Studio finds it."""
    record: Mapping[str, Any] | None
    """What was known when we wrote the task; None: somebody else wrote it."""
    said: Said | None
    """The newest annotation; None: nobody annotated the image."""


def read(path: str | Path, seed: int = 0) -> Loaded:
    """A folder with tasks.json (or one JSON file of another name), or the file; images beside it.

    Other JSON files beside tasks.json are exports of some of its tasks, and replace them.
    """
    file, *exports = _files(Path(path))
    left_out: list[str] = []
    newest = {_name(task): task for name in (file, *exports) for task in _tasks(name, left_out)}
    tasks = list(newest.values())
    problems = Problems(str(file.parent if exports else file))
    rows = [_row(task, problems) for task in tasks]
    categories = _categories(file.parent / CONFIG, tasks, rows, problems)
    images = _images(file.parent, tasks, problems)
    problems.raise_if_any()
    splits, notes = _splits(file, tasks, seed)
    if left_out:
        notes = (*notes, f"{len(left_out)} results that are no choices are left out")
    return Loaded(table_of(images, categories, rows, splits), file.parent, notes)


def _files(path: Path) -> list[Path]:
    """Label Studio names exports by their date, so the last by name is the newest."""
    if not path.is_dir():
        return [path]
    if not (path / TASKS).is_file():
        return [only_json(path)]
    return [path / TASKS, *sorted(file for file in path.glob("*.json") if file.name != TASKS)]


def _name(task: Task) -> str:
    """What makes a task of an export the same as one that we wrote."""
    return str((task.record or {}).get("image", task.address))


def _tasks(file: Path, left_out: list[str]) -> list[Task]:
    problems = Problems(str(file))
    tasks = [_task(item, number, problems, left_out) for number, item in enumerate(_items(file), start=1)]
    require_once([_name(task) for task in tasks], "image", problems)
    problems.raise_if_any()
    return tasks


def _items(file: Path) -> list[Any]:
    items = read_json(file)
    if not isinstance(items, list) or not items:
        raise UserError(f"{file}: not Label Studio's tasks: it needs a list of them")
    if not any(isinstance(item, dict) and "data" in item for item in items):
        raise UserError(f"{file}: no task has `data`; export from Label Studio as JSON, not as JSON-MIN")
    return items


def _task(item: Any, number: int, problems: Problems, left_out: list[str]) -> Task:
    data = item.get("data") if isinstance(item, dict) else None
    if not isinstance(data, dict) or not (address := _address(data)):
        problems.add(f"task {number}: no `data` with the address of an image")
        return Task("", "", None, None)
    place = f"task {item.get('id', number)} ({address})"
    record = data.get(RECORD) if isinstance(data.get(RECORD), dict) else None
    if not isinstance(item.get("annotations") or [], list):
        problems.add(f"{place}: `annotations` is not a list")
    results = _newest(item.get("annotations"))
    return Task(place, address, record, None if results is None else _said(results, place, problems, left_out))


def _newest(annotations: Any) -> list[Any] | None:
    """The results of the annotation that was changed last; a skipped task has one that is cancelled."""
    items = annotations if isinstance(annotations, list) else ()
    dicts = [item for item in items if isinstance(item, dict) and not item.get("was_cancelled")]
    dates = [str(item.get("updated_at") or item.get("created_at") or "") for item in dicts]
    last = max(range(len(dicts)), key=lambda number: (dates[number], number), default=None)
    results = None if last is None else dicts[last].get("result") or []
    return results if results is None or isinstance(results, list) else [results]


def _address(data: Mapping[str, Any]) -> str:
    """`image`, else the first field that looks like an image's address."""
    fields = [data.get("image"), *(value for name, value in data.items() if name != RECORD)]
    texts = [field for field in fields if isinstance(field, str)]
    if isinstance(data.get("image"), str):
        return texts[0]
    return next((text for text in texts if Path(_parts(text).path).suffix.lower() in SUFFIXES), "")


def _said(results: Sequence[Any], place: str, problems: Problems, left_out: list[str]) -> Said:
    said: dict[str, int] = {}
    for result in results:
        if isinstance(result, dict) and result.get("type") != "choices":
            left_out.append(place)
            continue
        choices = _choices(result)
        if choices is None:
            problems.add(f"{place}: a result of its annotation cannot be read")
        value = VALUES["absent" if choices and result.get("from_name") == "absent" else "present"]
        for name in choices or ():
            if said.setdefault(name, value) != value:
                problems.add(f"{place}: {name!r} is chosen as present and as absent")
    return said


def _choices(result: Any) -> list[str] | None:
    """The names that were chosen; None: it is no result with choices."""
    value = result.get("value") if isinstance(result, dict) else None
    choices = value.get("choices") if isinstance(value, dict) else None
    return list(map(str, choices)) if isinstance(choices, list) else None


def _row(task: Task, problems: Problems) -> dict[str, Entry]:
    """See the head of this file."""
    before = _recorded(task, problems)
    if task.said is None:
        return before
    kept = {(name, entry.value): entry for name, entry in before.items() if is_persons(entry)}
    return {name: kept.get((name, value), Entry(value, HUMAN)) for name, value in task.said.items()}


def is_persons(entry: Entry) -> bool:
    """Whether it is written as an annotation; what a model completed is a prediction."""
    return entry.source in (GIVEN, HUMAN)


def _recorded(task: Task, problems: Problems) -> dict[str, Entry]:
    record = task.record or {}
    row: dict[str, Entry] = {}
    try:
        for word, value in VALUES.items():
            for name in _names(record.get(word, [])):
                source, confidence = _names_source(record.get("sources", {}).get(name, (GIVEN, None)))
                if row.setdefault(name, Entry(value, source, confidence)).value != value:
                    raise ValueError(f"{name} is present and absent")
    except (TypeError, ValueError, AttributeError):
        problems.add(f"{task.place}: `data.{RECORD}` was changed and cannot be read")
    return row


def _names(listed: Any) -> list[str]:
    if not isinstance(listed, list) or not all(isinstance(name, str) for name in listed):
        raise TypeError("not a list of names")
    return listed


def _names_source(pair: Any) -> tuple[str, float]:
    source, confidence = pair
    if not isinstance(source, str) or not (confidence is None or is_number(confidence)):
        raise TypeError("not a source and how sure it was")
    return source, math.nan if confidence is None else float(confidence)


def _categories(config: Path, tasks: Sequence[Task], rows: Sequence[Row], problems: Problems) -> list[str]:
    """The choices of config.xml, if it is there; else every category found, sorted."""
    mentions = [(name, task.place) for task, row in zip(tasks, rows, strict=True) for name in row]
    if not config.is_file():
        found = sorted({name for name, _ in mentions})
        if not found:
            problems.add(f"no task has a choice, and there is no {CONFIG} that lists them")
        return found
    choices = [item for group in read_xml(config).root.iter("Choices") for item in group.iter("Choice")]
    names = list(dict.fromkeys(choice.get("value", "") for choice in choices))
    require_named(names, problems)
    count_unknown(mentions, names, f"{{name}} is not a choice of {CONFIG}", problems)
    return names


def _images(root: Path, tasks: Sequence[Task], problems: Problems) -> list[str]:
    images = []
    for task in tasks:
        found = [name for name in _candidates(task) if is_inside(name) and is_file(root / name)]
        if not found:
            problems.add(f"{task.place}: its image is not below {root}; put it there under the same name")
        images.append(found[0] if found else task.place)
    require_once(images, "image", problems)
    return images


def _candidates(task: Task) -> Iterator[str]:
    """Paths where the image may be: the recorded one, else the address's own, ever fewer folders in front.

    An address is a path, a URL, or /data/local-files/?d=PATH; a file that was uploaded has 8 letters and a
    hyphen put in front of its name.
    """
    if task.record is not None and isinstance(task.record.get("image"), str):
        yield task.record["image"]
    yield task.address
    parts = _parts(task.address)
    path = parse_qs(parts.query).get("d", [unquote(parts.path)])[0].lstrip("/")
    pieces = path.split("/")
    for start in range(len(pieces)):
        yield "/".join(pieces[start:])
        yield "images/" + "/".join(pieces[start:])
    yield pieces[-1].partition("-")[2]
    yield "images/" + pieces[-1].partition("-")[2]


def _parts(address: str) -> SplitResult:
    """What does not look like an address, though it has its marks, is taken as a path."""
    try:
        return urlsplit(address)
    except ValueError:
        return SplitResult("", "", address, "", "")


def _splits(file: Path, tasks: Sequence[Task], seed: int) -> tuple[Sequence[str], tuple[str, ...]]:
    own = [(task.record or {}).get("split") for task in tasks]
    splits = [split for split in own if split in (TRAIN, TEST)]
    if len(splits) == len(own):
        return splits, ()
    return seeded_split(len(tasks), seed), (f"{file.name} has no split: a seeded 80/20 split (seed {seed})",)
