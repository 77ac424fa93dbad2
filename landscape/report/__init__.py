"""The report of a landscape: one HTML file that stands alone, offline, to send to a co-author."""

from valleyscope.landscape.report.page import report_html, write_report

__all__ = ["report_html", "write_report"]
