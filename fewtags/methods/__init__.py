"""Every system, by name: one explicit dict."""

from fewtags.methods.assume_absent import AssumeAbsent
from fewtags.methods.base import Method, Setting
from fewtags.methods.full_labels import FullLabels
from fewtags.methods.hst import Hst
from fewtags.methods.plain import Plain
from fewtags.methods.ssgrl import Ssgrl

METHODS: dict[str, type[Method]] = {
    "plain": Plain,
    "assume_absent": AssumeAbsent,
    "full_labels": FullLabels,
    "ssgrl": Ssgrl,
    "hst": Hst,
}

__all__ = ["METHODS", "Method", "Setting"]
