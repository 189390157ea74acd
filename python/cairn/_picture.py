"""Draws pictures of memory for notebooks, as SVG without scripts, for light and dark backgrounds."""

from __future__ import annotations

import html
from typing import List, Optional, Tuple

import numpy as np

from . import _cairn

_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 720, 230, 78, 12, 26, 30
_MOST_COLUMNS = 600
_GREY, _BLUE, _RED = "#858e9a", "#3b82d0", "#c2410c"


def _columns(profile: np.ndarray) -> np.ndarray:
    """Shortens a memory profile (bytes during each step) to _MOST_COLUMNS numbers, each of which is the maximum over a
    range of steps. The ranges are about equally long. Returns a profile with at most _MOST_COLUMNS steps unchanged."""
    if len(profile) <= _MOST_COLUMNS:
        return profile
    return np.maximum.reduceat(profile, np.arange(_MOST_COLUMNS) * len(profile) // _MOST_COLUMNS)


def _height(value: float, top: int) -> float:
    return _HEIGHT - _BOTTOM - value / max(top, 1) * (_HEIGHT - _TOP - _BOTTOM)


def _line(profile: np.ndarray, top: int) -> str:
    columns = _columns(profile)
    width = (_WIDTH - _LEFT - _RIGHT) / len(columns)
    points = (f"{_LEFT + i * width:.1f},{_height(int(value), top):.1f}h{width:.1f}" for i, value in enumerate(columns))
    return "M" + "L".join(points)


def _filled(path: str) -> str:
    ground = _HEIGHT - _BOTTOM
    return (f'<path d="{path}V{ground}H{_LEFT}Z" fill="{_BLUE}" fill-opacity="0.25"/>'
            f'<path d="{path}" fill="none" stroke="{_BLUE}" stroke-width="1.4"/>')


def memory_svg(title: str, baseline: np.ndarray, schedule: Optional[np.ndarray] = None,
               budget: Optional[int] = None) -> str:
    """Draws the bytes in memory during the baseline and a schedule, and the budget. Returns SVG. Each curve is
    stretched to the width of the picture, because the schedule can have more steps than the baseline."""
    right = _WIDTH - _RIGHT
    shown = [profile for profile in (baseline, schedule) if profile is not None and len(profile)]
    top = max([int(profile.max()) for profile in shown] + [budget or 0])
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
             f'style="max-width:{_WIDTH}px;font:12px system-ui,sans-serif;color:#7a828c" role="img">',
             f"<title>{html.escape(title)}</title>",
             f'<text x="{_LEFT}" y="16" fill="currentColor">{html.escape(title)}</text>']
    for value in (0, top // 2, top):
        y = _height(value, top)
        parts.append(f'<line x1="{_LEFT}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}" stroke="{_GREY}" stroke-opacity="0.3"/>'
                     f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end" fill="currentColor">'
                     f"{_cairn.format_bytes(value)}</text>")
    legend: List[Tuple[str, str]] = []
    if len(baseline) and schedule is None:
        parts.append(_filled(_line(baseline, top)))
        legend.append(("currentColor", f"{len(baseline)} steps"))
    elif len(baseline):
        parts.append(f'<path d="{_line(baseline, top)}" fill="none" stroke="{_GREY}" stroke-width="1.2"/>')
        legend.append((_GREY, "baseline"))
    if schedule is not None and len(schedule):
        parts.append(_filled(_line(schedule, top)))
        legend.append((_BLUE, "schedule"))
    if budget is not None:
        y = _height(budget, top)
        parts.append(f'<line x1="{_LEFT}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}" stroke="{_RED}" stroke-dasharray="5 4"/>')
        legend.append((_RED, f"budget {_cairn.format_bytes(budget)}"))
    x = _LEFT
    for colour, words in legend:
        parts.append(f'<text x="{x}" y="{_HEIGHT - 9}" fill="{colour}">{html.escape(words)}</text>')
        x += 8 * len(words) + 16
    return "".join(parts) + "</svg>"


def graph_html(graph: _cairn.Graph) -> str:
    peak = _cairn.format_bytes(graph.baseline.peak)
    return memory_svg(f"{graph.name or 'graph'}: {graph.node_count} nodes, baseline peak {peak}",
                      _cairn.profile(graph, graph.input_order))


def answer_html(answer: _cairn.Answer) -> str:
    """Returns HTML: a picture of the memory of the baseline and of the answer's schedule, and the answer's table."""
    graph = answer.graph
    title = (f"{graph.name or 'graph'}: {_cairn.format_bytes(answer.baseline.peak)} become "
             f"{_cairn.format_bytes(answer.peak)}, {answer.recomputed} recomputed steps, cost "
             f"{100 * answer.cost_increase:+.1f}%")
    picture = memory_svg(title, _cairn.profile(graph, graph.input_order), _cairn.profile(graph, answer.schedule),
                         answer.budget)
    return f"{picture}<pre>{html.escape(str(answer))}</pre>"
