"""A dashboard as SVG: the tiles of its grid, drawn from the series that Prometheus made of the samples."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape

from tests.dashboards.axis import Axis, axis_for
from tests.dashboards.dashboards import Dashboard, Tile

Values = Sequence[float | None]
Results = Mapping[str, Sequence[tuple[Mapping[str, str], Values]]]

_WORD = "what"  # the label by which stacks/dashboards.py tells the queries of a chart apart

_WIDTH, _ROW, _MARGIN, _GAP, _HEADER = 1000, 14, 16, 8, 48  # pixels
_LETTER = 6.1  # width in pixels of most small letters
_COLORS = ("#1a73e8", "#e8710a", "#12a4af", "#9334e6", "#d01884", "#689f38", "#d93025", "#f9ab00")
_STYLE = (
    ".page{fill:#f1f3f4}.card{fill:#fff;stroke:#dadce0}.h{font-size:18px;font-weight:500}.t{font-size:13px;font-weight:600}"
    ".s{fill:#5f6368;font-size:11px}.n{font-size:30px}.g{stroke:#e8eaed}.b{stroke:#9aa0a6}"
    ".l{fill:none;stroke-width:1.6;stroke-linejoin:round}.a{fill-opacity:.3}"
    ".k{stroke:#5f6368}.d1{stroke-dasharray:5 3}.d2{stroke-dasharray:1.5 2.5}"
    + "".join(f".c{index}{{stroke:{color}}}.f{index}{{fill:{color}}}" for index, color in enumerate(_COLORS))
)


@dataclass(frozen=True, kw_only=True)
class _Line:
    """A series with its values, or those at its upper and its lower edge where it is stacked on others.

    Series of the same name have the same colour; `dash` tells them apart by the word that the dashboard gave the query.
    """

    name: str
    word: str
    color: int
    dash: int
    top: Values
    base: Sequence[float] | None


@dataclass(frozen=True, kw_only=True)
class _Frame:
    """Where the values are drawn, and which values its height is."""

    left: float
    top: float
    right: float
    bottom: float
    axis: Axis

    def x(self, index: int, count: int) -> float:
        return self.left + (self.right - self.left) * index / (count - 1)

    def y(self, value: float) -> float:
        return self.bottom - (self.bottom - self.top) * (value - self.axis.ticks[0]) / self.axis.span


def picture(dashboard: Dashboard, results: Results, *, hours: int) -> str:
    """`hours` is how long the series are; they begin at midnight."""
    rows = max(tile.y + tile.height for tile in dashboard.tiles)
    height = _HEADER + rows * _ROW + _MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" font-size="12" fill="#202124"',
        ' font-family="Roboto, Helvetica, Arial, \'DejaVu Sans\', sans-serif" role="img"',
        f' aria-label="{escape(dashboard.title)}">\n<style>{_STYLE}</style>\n',
        f'<rect width="{_WIDTH}" height="{height}" rx="10" class="page"/>\n',
        _text(_MARGIN + 4, 31, dashboard.title, "h"),
    ]
    column = (_WIDTH - 2 * _MARGIN + _GAP) / dashboard.columns
    for tile in dashboard.tiles:
        left, top = _MARGIN + tile.x * column, _HEADER + tile.y * _ROW
        width, tall = tile.width * column - _GAP, tile.height * _ROW - _GAP
        parts += [
            f'<g transform="translate({left:.0f} {top})">',
            f'<rect width="{width:.0f}" height="{tall}" rx="6" class="card"/>',
            _text(12, 21, _cut(tile.title, width - 24, 1.25), "t"),
            *_inside(tile, results, width, tall, hours),
            "</g>\n",
        ]
    return "".join([*parts, "</svg>\n"])


def _inside(tile: Tile, results: Results, width: float, height: float, hours: int) -> Iterator[str]:
    if tile.text:
        plain = re.sub(r"\[([^]]*)\]\([^)]*\)|[*`#]", r"\1", tile.text)
        lines = [line for part in plain.splitlines() for line in textwrap.wrap(part, int((width - 24) / _LETTER))]
        for index, line in enumerate(lines):
            yield _text(12, 42 + 17 * index, line, "s")
        return
    lines = list(_lines(tile, results))
    shown = [value for line in lines for value in (*line.top, *(line.base or ())) if value is not None]  # type: ignore[attr-defined]
    axis = axis_for(shown, tile.plots[0].unit)
    if tile.scorecard:
        now = lines[0].top[-1] if lines else None  # type: ignore[attr-defined]
        yield _text(12, 58, "no data" if now is None else axis.exactly(now), "n")
        frame = _Frame(left=12, top=70, right=width - 12, bottom=height - 10, axis=axis)
    else:
        legend, legend_height = _legend(lines, width)
        frame = _Frame(left=48, top=52, right=width - 22, bottom=height - legend_height - 26, axis=axis)
        yield from _axes(frame, axis.unit or tile.axis, hours)
        yield f'<g transform="translate(0 {height - legend_height:.0f})">{legend}</g>'
    for line in lines:
        yield from _drawn(line, frame)


def _lines(tile: Tile, results: Results) -> Iterator[_Line]:
    """Raises ValueError for a kind of plot that nothing here draws."""
    names: list[str] = []
    words: list[str] = []
    base: Sequence[float] | None = None
    for plot in tile.plots:
        for labels, values in results[plot.query]:
            name = ", ".join(value for label, value in labels.items() if label not in ("__name__", _WORD))
            word = labels.get(_WORD, "")
            names += [name] if name not in names else []
            words += [word] if word not in words else []
            color, dash = names.index(name) % len(_COLORS), words.index(word)
            if plot.kind == "STACKED_AREA":
                base = base or [0.0] * len(values)
                top = [below + (value or 0) for below, value in zip(base, values, strict=True)]
                yield _Line(name=name, word=word, color=color, dash=dash, top=top, base=base)
                base = top
            elif plot.kind == "LINE":
                yield _Line(name=name, word=word, color=color, dash=dash, top=values, base=None)
            else:
                raise ValueError(f"plotType '{plot.kind}': neither LINE nor STACKED_AREA")


def _axes(frame: _Frame, label: str, hours: int) -> Iterator[str]:
    for value, text in zip(frame.axis.ticks, frame.axis.texts, strict=True):
        kind = "b" if value == 0 else "g"
        yield f'<path d="M{frame.left:.0f} {frame.y(value):.1f}H{frame.right:.0f}" class="{kind}"/>'
        yield _text(frame.left - 6, frame.y(value) + 4, text, "s", anchor="end")
    yield _text(12, 38, label, "s")
    every = 2 if frame.right - frame.left > 260 else 4
    for hour in range(0, hours + 1, every):
        yield _text(frame.x(hour, hours + 1), frame.bottom + 16, f"{hour:02}:00", "s", anchor="middle")


def _drawn(line: _Line, frame: _Frame) -> Iterator[str]:
    count = len(line.top)
    runs: list[list[tuple[float, float]]] = [[]]
    for index, value in enumerate(line.top):
        if value is not None:
            runs[-1].append((frame.x(index, count), frame.y(value)))
        elif runs[-1]:
            runs.append([])
    outline = "".join(_path(run) for run in runs if run)
    if line.base is not None:
        back = [(frame.x(index, count), frame.y(value)) for index, value in enumerate(line.base)]
        yield f'<path d="{outline}{_path(back[::-1]).replace("M", "L", 1)}Z" class="a f{line.color}"/>'
    yield f'<path d="{outline}" class="l c{line.color} d{line.dash}"/>'


def _path(points: Sequence[tuple[float, float]]) -> str:
    """Without the points in the middle of a level stretch. A single point is a dash of two pixels."""
    rounded = [(f"{x:.0f}", f"{y:.1f}".removesuffix(".0")) for x, y in points]
    if len(rounded) == 1:
        return f"M{rounded[0][0]} {rounded[0][1]}h2"
    kept = [
        point
        for index, point in enumerate(rounded)
        if not 0 < index < len(rounded) - 1 or {rounded[index - 1][1], rounded[index + 1][1]} != {point[1]}
    ]
    return "M" + "L".join(f"{x} {y}" for x, y in kept)


def _legend(lines: Sequence[_Line], width: float) -> tuple[str, int]:
    """The names with their colours and the words with their dashes, in rows, and the height of these."""
    entries = dict.fromkeys(
        (line.name, f'<rect y="-8" width="9" height="9" rx="2" class="f{line.color}"/>') for line in lines
    )
    if any(line.word for line in lines):
        entries |= dict.fromkeys((line.word, f'<path d="M-3 -4h14" class="l k d{line.dash}"/>') for line in lines)
    parts, x, y = [], 14.0, 8
    for text, mark in entries:
        if not text:
            continue
        shown = _cut(text, width - 40)
        needed = 30 + _wide(shown)
        if x > 14 and x + needed > width:
            x, y = 14.0, y + 16
        parts.append(f'<g transform="translate({x:.0f} {y})">{mark}{_text(14, 0, shown, "s")}</g>')
        x += needed
    return "".join(parts), y + 10 if parts else 8


def _cut(text: str, width: float, size: float = 1) -> str:
    """What fits into so many pixels, in letters so many times as large as most."""
    while _wide(text) * size > width:
        text = text[:-2] + "…"
    return text


def _wide(text: str) -> float:
    """About how many pixels, in a font that is rather wide."""
    return sum(7.6 if letter.isupper() or letter in "_mw…" else _LETTER for letter in text)


def _text(x: float, y: float, text: str, kind: str, *, anchor: str = "") -> str:
    placed = f' text-anchor="{anchor}"' if anchor else ""
    return f'<text x="{x:.0f}" y="{y:.0f}" class="{kind}"{placed}>{escape(text)}</text>'
