"""Charts as SVG text, the same on the web and on paper. Pure: figures of a verdict in, SVG out; no chart computes a verdict.

Every function takes a `language` (anything that starts with zh is Chinese) and a `theme`: `light`, `dark`, `print`, or `css`, which
takes its colours from the page's custom properties `--chart-*`. The SVG carries a title and a description for those who cannot see it.
"""

from app.reports.charts.repeat import repeatability
from app.reports.charts.soak import soak
from app.reports.charts.svg import THEMES
from app.reports.charts.throughput import interval_bar, throughput_band
from app.reports.charts.ttft import ttft_ecdf

__all__ = ["THEMES", "interval_bar", "repeatability", "soak", "throughput_band", "ttft_ecdf"]
