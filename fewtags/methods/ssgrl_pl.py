"""ssgrl_pl: ssgrl, and after warm-up its own confident predictions as present labels."""

from __future__ import annotations

from fewtags.methods.plain_pl import OwnPredictions
from fewtags.methods.ssgrl import Ssgrl


class SsgrlPl(OwnPredictions, Ssgrl):
    summary = "ssgrl, with its own confident predictions as present labels after warm-up"
