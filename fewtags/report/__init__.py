"""Reports for people. They read tables and JSON from run folders, never a model."""

from __future__ import annotations

from fewtags.report.page import comparison_report, run_report
from fewtags.report.picture import comparison_picture
from fewtags.report.terminal import metrics_table

__all__ = ["comparison_picture", "comparison_report", "metrics_table", "run_report"]
