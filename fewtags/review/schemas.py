"""What goes over the wire; the OpenAPI page is made from it."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

Text = Annotated[str, Field(max_length=4096)]
Tab = Annotated[str, Field(min_length=1, max_length=64, description="Made by the page: who answers.")]
Request = Annotated[
    str, Field(min_length=8, max_length=64, description="Made by the client; the same one sent twice counts once.")
]
Decision = Literal["present", "absent", "unknown"]
Origin = Literal["model", "intra", "cross", "intra+cross", "none"]
State = Literal["open", "yes", "no", "skipped"]
Share = Annotated[float, Field(ge=0, le=1)]


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class FilterQuery(Strict):
    category: list[Text] = Field(default=[], description="Any of these; none given: all.")
    low: Share = Field(default=0.0, description="Least probability.")
    high: Share = Field(default=1.0, description="Greatest probability.")
    decision: list[Decision] = []
    origin: list[Origin] = []


class NextQuery(FilterQuery):
    order: Literal["value", "uncertain", "confident", "random"] | None = None
    state: list[State] = ["open"]
    count: int = Field(default=1, ge=1, le=20)
    tab: Tab = "api"
    after: int | None = Field(default=None, ge=0, description="Only what comes later than this row.")


class BulkQuery(FilterQuery):
    answer: Literal["yes", "no"] = "yes"
    level: Share = Field(description="yes: from this probability up; no: from it down.")


class AnswerBody(Strict):
    image: Text
    category: Text
    answer: Literal["yes", "no", "skipped"]
    tab: Tab
    request: Request


class UndoBody(Strict):
    tab: Tab
    unit: int | None = Field(default=None, description="A unit of the history; none: the tab's last.")


class BulkBody(Strict):
    filters: FilterQuery = FilterQuery()
    answer: Literal["yes", "no"]
    level: Share
    expected: int = Field(ge=1, description="How many the preview showed: if it changed, nothing is done.")
    tab: Tab
    request: Request


class Known(BaseModel):
    category: str
    p: float


class Similar(BaseModel):
    image: str
    similarity: float
    image_number: int | None


class Item(BaseModel):
    row: int
    image: str
    image_number: int
    category: str
    category_number: int
    named: str = Field(description="The category with its article.")
    question: str
    probability: float
    decision: Decision
    suggestion: str
    origin: Origin
    reason: list[str]
    score: float
    intra: float | None
    known: list[Known]
    cross: float | None
    similar: list[Similar]
    state: State


class Progress(BaseModel):
    total: int
    open: int
    yes: int
    no: int
    skipped: int


class NextAnswer(BaseModel):
    items: list[Item]
    progress: Progress


class Setup(BaseModel):
    data: str
    run: str
    suggestions: str
    order: str
    orders: list[str]
    categories: list[str]
    decisions: list[str]
    origins: list[str]
    progress: Progress


class Saved(BaseModel):
    unit: int | None = Field(description="None: this request had been saved before.")
    state: State
    previous: State


class UndoAnswer(BaseModel):
    unit: int | None = Field(description="None: there was nothing to undo.")
    kind: str | None = None
    entries: int = 0
    item: Item | None = Field(default=None, description="The suggestion, if it was one.")


class BulkPreview(BaseModel):
    count: int
    sample: list[Item]


class BulkAnswer(BaseModel):
    count: int


class Unit(BaseModel):
    id: int
    time: float
    tab: str
    kind: str
    undone: float | None
    entries: int
    image: str
    category: str
    answer: State


class History(BaseModel):
    units: list[Unit]


class Attention(BaseModel):
    grid: list[list[float]]


class Exported(BaseModel):
    file: str
    human: int = Field(description="Labels with source `human`.")
    train: str = Field(description="How to train on it.")
