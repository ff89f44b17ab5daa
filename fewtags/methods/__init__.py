"""Every system, by name: one explicit dict."""

from fewtags.methods.asl import Asl
from fewtags.methods.assume_absent import AssumeAbsent
from fewtags.methods.base import Method, Setting
from fewtags.methods.curriculum import Curriculum
from fewtags.methods.full_labels import FullLabels
from fewtags.methods.gcn_ml import GcnMl
from fewtags.methods.hst import Hst
from fewtags.methods.hst_fb import HstFb
from fewtags.methods.kggr import Kggr
from fewtags.methods.p_gcn import PGcn
from fewtags.methods.partial_bce import PartialBce
from fewtags.methods.plain import Plain
from fewtags.methods.plain_pl import PlainPl
from fewtags.methods.sarb import Sarb
from fewtags.methods.ssgrl import Ssgrl
from fewtags.methods.ssgrl_pl import SsgrlPl
from fewtags.methods.sst import Sst

METHODS: dict[str, type[Method]] = {
    "plain": Plain,
    "assume_absent": AssumeAbsent,
    "plain_pl": PlainPl,
    "full_labels": FullLabels,
    "partial_bce": PartialBce,
    "asl": Asl,
    "curriculum": Curriculum,
    "gcn_ml": GcnMl,
    "p_gcn": PGcn,
    "ssgrl": Ssgrl,
    "ssgrl_pl": SsgrlPl,
    "kggr": Kggr,
    "sst": Sst,
    "sarb": Sarb,
    "hst": Hst,
    "hst_fb": HstFb,
}

__all__ = ["METHODS", "Method", "Setting"]
