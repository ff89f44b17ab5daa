"""Ways to damage a label file: by its bytes, its lines, its cells, and by the values in JSON and XML."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

TEXTS = (
    "",
    " ",
    "0",
    "1",
    "-1",
    "2",
    "nan",
    "é",
    "日本",
    '"',
    "''",
    ",",
    "\x00",
    "\ud800",
    "../../etc/passwd",
    "/",
    ".",
)
JUNK: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    1,
    -1,
    10**400,
    1.5,
    float("nan"),
    [],
    [[]],
    {},
    {"label": []},
    *TEXTS,
)


def flip_bytes(content: bytes, rng: random.Random) -> bytes:
    changed = bytearray(content)
    for _ in range(rng.choice((1, 1, 2, 8))):
        changed[rng.randrange(len(changed))] = rng.randrange(256)
    return bytes(changed)


def cut_off(content: bytes, rng: random.Random) -> bytes:
    return content[: rng.randrange(len(content))]


def cut_out(content: bytes, rng: random.Random) -> bytes:
    start = rng.randrange(len(content))
    return content[:start] + content[start + rng.randrange(1, 40) :]


def put_in(content: bytes, rng: random.Random) -> bytes:
    start = rng.randrange(len(content) + 1)
    pieces = [
        b"\x00",
        b"\xff\xfe",
        b"\n",
        b"\r",
        b'"',
        b",",
        b"{",
        b"]",
        b"<x>",
        b"&amp;",
        b"\xef\xbb\xbf",
        b"9" * 5000,
    ]
    return content[:start] + rng.choice(pieces) + content[start:]


def replaced(content: bytes, rng: random.Random) -> bytes:
    nested = b"[" * 5000 + b"]" * 5000
    doctype = b'<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>'
    whole = [b"", b" ", b"\n\n", b"\x00" * 100, b"null", b"[]", b"{}", b"<a/>", b"a,b\n", nested, doctype]
    encodings = [content.decode().encode(name) for name in ("utf-16", "utf-32", "utf-8-sig")]
    return rng.choice(whole + encodings)


def lines(content: bytes, rng: random.Random) -> bytes:
    """Repeat, drop, swap or shuffle lines; other line ends."""
    rows = content.split(b"\n")
    one, two = rng.randrange(len(rows)), rng.randrange(len(rows))
    kind = rng.randrange(6)
    if kind == 0:
        rows.insert(two, rows[one])
    elif kind == 1:
        del rows[one]
    elif kind == 2:
        rows[one], rows[two] = rows[two], rows[one]
    elif kind == 3:
        rows.insert(one, b"")
    elif kind == 4:
        rows[one] = rows[one] + rng.choice((b",", b",1", b" ", b"\t"))
    return rng.choice((b"\r\n", b"\r")).join(rows) if kind == 5 else b"\n".join(rows)


def cells(content: bytes, rng: random.Random) -> bytes:
    """Another cell at one place between commas, blanks or tabs."""
    rows = content.decode().split("\n")
    row = rng.randrange(len(rows))
    parts = rows[row].split(",")
    parts[rng.randrange(len(parts))] = rng.choice(TEXTS)
    rows[row] = ",".join(parts)
    return "\n".join(rows).encode("utf-8", "surrogatepass")


def values(content: bytes, rng: random.Random) -> bytes:
    """JSON with another value, a missing key, a value moved, or a key that is there twice."""
    tree = json.loads(content)
    places = list(_places(tree))
    holder, key = rng.choice(places)
    kind = rng.randrange(4)
    if kind == 0:
        del holder[key]
    elif kind == 1:
        other, its = rng.choice(places)
        holder[key] = json.loads(json.dumps(other[its])) if _still_there(other, its) else None
    else:
        holder[key] = rng.choice(JUNK)
    text = json.dumps(tree)
    if kind == 3 and isinstance(holder, dict) and "{" in text:
        text = text.replace("{", '{"labels": {}, "id": 1, "id": 2, ', 1)
    return text.encode()


def _still_there(holder: Any, key: Any) -> bool:
    return key in holder if isinstance(holder, dict) else key < len(holder)


def _places(tree: Any) -> Any:
    """(holder, key) of every value."""
    items = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in list(items):
        yield tree, key
        yield from _places(value)


def marks(content: bytes, rng: random.Random) -> bytes:
    """XML with a tag, an attribute or a text turned into another."""
    words = [
        b"image",
        b"tag",
        b"label",
        b"name",
        b"present",
        b"absent",
        b"object",
        b"difficult",
        b"annotation",
        b"1",
        b"0",
    ]
    old, new = rng.choice(words), rng.choice([*words, b"", b"../../x", b"\xc3\xa9"])
    places = [place for place in range(len(content)) if content.startswith(old, place)]
    if not places:
        return flip_bytes(content, rng)
    start = rng.choice(places)
    return content[:start] + new + content[start + len(old) :]


Damage = Callable[[bytes, random.Random], bytes]
ANY: tuple[Damage, ...] = (flip_bytes, cut_off, cut_out, put_in, replaced)
BY_SUFFIX: dict[str, tuple[Damage, ...]] = {
    ".csv": (*ANY, lines, lines, cells, cells, cells),
    ".txt": (*ANY, lines, cells),
    ".json": (*ANY, values, values, values, values, values),
    ".xml": (*ANY, lines, marks, marks, marks),
    ".parquet": (flip_bytes, cut_off, cut_out, put_in),
}


def damaged(content: bytes, suffix: str, rng: random.Random) -> tuple[str, bytes]:
    """(how, the damaged bytes)."""
    how = rng.choice(BY_SUFFIX[suffix])
    try:
        return how.__name__, how(content, rng)
    except UnicodeDecodeError:  # Parquet is no text
        return "flip_bytes", flip_bytes(content, rng)
