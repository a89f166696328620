"""The report as one HTML page that needs nothing else: no script, nothing loaded, text from machines escaped."""

from gpudoctor.report.html.page import render_html

__all__ = ["render_html"]
