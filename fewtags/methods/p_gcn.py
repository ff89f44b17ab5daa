"""p_gcn: category features as in ssgrl, then graph convolution over categories gives the scores (SPEC 9)."""

from __future__ import annotations

from fewtags.methods.ssgrl import Ssgrl
from fewtags.nn.tagger import ConvolutionTagger


class PGcn(Ssgrl):
    summary = "category features, and graph convolution over categories that gives the scores"
    network = ConvolutionTagger
