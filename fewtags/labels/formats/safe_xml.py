"""XML from other people's hands: no document type, hence no entities to expand and no outside files to fetch."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

from fewtags.errors import UserError
from fewtags.labels.formats.loaded import read_bytes


class Parsed(NamedTuple):
    root: Element
    lines: dict[Element, int]
    """The line on which each element starts."""


def read_xml(path: Path, shown: str | None = None) -> Parsed:
    """`shown`: what errors call the file; its path by default."""
    content = read_bytes(path)
    name = shown or str(path)
    if not content.strip():
        raise UserError(f"{name}: the file is empty")
    return parse_xml(content, name)


def parse_xml(content: bytes, name: str) -> Parsed:
    parser = expat.ParserCreate()
    parser.buffer_text = True
    builder = TreeBuilder()
    lines: dict[Element, int] = {}

    def start(tag: str, attributes: dict[str, str]) -> None:
        lines[builder.start(tag, attributes)] = parser.CurrentLineNumber

    def refuse(*_: object) -> None:
        raise UserError(
            f"{name}: line {parser.CurrentLineNumber}: has a document type (<!DOCTYPE ...>), which is not read "
            "because it can make a small file huge or point to other files; remove it"
        )

    parser.StartElementHandler = start
    parser.EndElementHandler = builder.end
    parser.CharacterDataHandler = builder.data
    parser.StartDoctypeDeclHandler = refuse
    try:
        parser.Parse(content, True)
    except (ValueError, LookupError) as problem:  # of an encoding that the parser does not know
        raise UserError(f"{name}: not readable as XML ({problem})") from problem
    except expat.ExpatError as problem:
        words = expat.ErrorString(problem.code)
        raise UserError(
            f"{name}: line {problem.lineno}, column {problem.offset + 1}: not readable as XML ({words})"
        ) from problem
    return Parsed(builder.close(), lines)
