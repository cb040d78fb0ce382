"""Pictures and text out of an Outcome: Markdown, HTML, lines for a terminal, and what happened in plain words.

Pure: no clock, no files, no network. What a report says is in the Outcome; it never judges anew.
"""

from jobset_steps.report.explain import explain
from jobset_steps.report.html import html
from jobset_steps.report.lines import lines
from jobset_steps.report.markdown import markdown

__all__ = ["explain", "html", "lines", "markdown"]
