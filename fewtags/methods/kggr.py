"""kggr: ssgrl, whose classifiers come out of a second gated graph network over the same label graph (SPEC 9)."""

from __future__ import annotations

from fewtags.methods.ssgrl import Ssgrl
from fewtags.nn.tagger import KnowledgeTagger


class Kggr(Ssgrl):
    summary = "ssgrl, and a second label graph through which the classifiers learn from each other"
    network = KnowledgeTagger
