"""Plots of a run by matplotlib, from the same chart data as the page and the static figures (docs/charts.md)."""
from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Callable, Optional

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Json = dict[str, Any]

# : unit of a chart: label of the axis, and divisor of the values
UNITS: dict[str, tuple[tuple[float, str], ...]] = {
    "w": ((1e6, "MW"), (1e3, "kW"), (1, "W"), (1e-3, "mW")),
    "j": ((1e9, "GJ"), (1e6, "MJ"), (1e3, "kJ"), (1, "J"), (1e-3, "mJ")),
    "bytes": ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1, "B")),
    "mhz": ((1e3, "GHz"), (1, "MHz")),
    "s": ((3600, "h"), (60, "min"), (1, "s"), (1e-3, "ms"), (1e-6, "µs")),
    "cores": ((1, "cores"),), "percent": ((1, "%"),), "c": ((1, "°C"),), "processes": ((1, "processes"),),
}
NAME_LENGTH = 40
LANES, BLOCKS = 40, 16  # : maximum number drawn


def unit_for(quantity: str, value: float) -> tuple[float, str]:
    """The largest unit in which the value is at least one."""
    rows = UNITS.get(quantity, ((1.0, ""),))
    return next((row for row in rows if abs(value) >= row[0]), rows[-1])


def short(name: Optional[str]) -> str:
    """A name on one line, without matplotlib's formula syntax."""
    text = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in name or "(unnamed)").replace("$", r"\$")
    return text if len(text) <= NAME_LENGTH else text[:NAME_LENGTH - 1] + "…"


class Picture:
    """Data shared by all kinds."""

    def __init__(self, report: Json, charts: Json, ax: Axes) -> None:
        self.report, self.charts, self.ax = report, charts, ax
        self.time_size, self.time_unit = unit_for("s", charts["axis"]["length_s"] / 2)

    def colour(self, name: str) -> str:
        return str(self.charts["palette"][name]["light"])

    def block_colour(self, block: Optional[int]) -> str:
        """Colour of a block by its number, the same in all plots."""
        return self.colour("idle" if block is None else self.charts["block_colours"][block])

    def edges(self) -> Any:
        """Begins of buckets, and the end of the last one; in the unit of the axis."""
        import numpy
        axis = self.charts["axis"]
        return numpy.array([*axis["from_s"], *axis["to_s"][-1:]]) / self.time_size

    def finish_time(self) -> None:
        axis = self.charts["axis"]
        self.ax.set_xlim(0, axis["length_s"] / self.time_size)
        self.ax.set_xlabel(f"time since the start, {self.time_unit}")
        for segment in axis["segments"][1:]:
            self.ax.axvline(segment["from_s"] / self.time_size, color=self.colour("faint"), linestyle=":", linewidth=1)


def _values(series: Json, which: str) -> Any:
    """Numbers of a series, NaN where unknown; missing extremes are the means."""
    import numpy
    return numpy.array(series.get(which) or series["mean"], dtype=float)


def _label(series: Json) -> str:
    name = short(series["name"] if series["device"] else series["label"])
    plain = series["line"] == "limit" or series["provenance"] == "measured"
    return name if plain else f"{name} ({series['provenance']})"


def _legend(picture: Picture) -> None:
    """Above the axes, where it hides nothing."""
    picture.ax.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=5, fontsize="small", frameon=False, borderpad=0)


def _hatched(provenance: Optional[str]) -> Json:
    """Estimates are marked in every plot."""
    return {"hatch": "///", "edgecolor": "white"} if provenance == "estimated" else {}


def _stack(picture: Picture, series: list[Json], size: float) -> None:
    import numpy
    edges, base = picture.edges(), numpy.zeros(len(picture.charts["axis"]["from_s"]))
    limited = [s["device"] for s in series if s["line"] == "limit"]
    # Those with a limit come first, as in the page's chart.
    for one in sorted((s for s in series if s["line"] == "part"),
                      key=lambda s: s["device"] not in limited or len(limited) > 2):
        top = base + numpy.nan_to_num(_values(one, "mean")) / size
        picture.ax.stairs(top, edges, baseline=base, fill=True, facecolor=picture.colour(one["colour"]),
                          alpha=0.85, linewidth=0, label=_label(one), **_hatched(one["provenance"]))
        base = top
    for one in (s for s in series if s["line"] in ("whole", "target")):
        is_whole = one["line"] == "whole"
        if is_whole and "high" not in one:
            continue
        picture.ax.stairs(_values(one, "high" if is_whole else "mean") / size, edges, baseline=None,
                          color=picture.colour("faint" if is_whole else "ink"), linewidth=0.6 if is_whole else 1,
                          label="highest of total" if is_whole else _label(one))


def _style(picture: Picture, one: Json) -> Json:
    line, device = one["line"], one["device"]
    if line == "mean":
        return {"color": picture.colour("ink"), "linestyle": "-"}
    if device:
        return {"color": picture.colour(one["colour"]), "linestyle": {"part": "-", "target": "--"}.get(line, ":")}
    colours = {"machine": "idle", "wattle": "wattle"}
    return {"color": picture.colour(colours.get(one["name"], "target")), "linestyle": "--" if line == "beside" and
            one["name"] not in colours else "-"}


def _lines(picture: Picture, series: list[Json], size: float) -> None:
    edges = picture.edges()
    has_mean = any(one["line"] == "mean" for one in series)  # of many devices: single ones are thin beside it
    for one in series:
        if has_mean and one["line"] not in ("mean", "part"):
            continue
        style = _style(picture, one)
        if ("low" in one or "high" in one) and (one["line"] == "mean" or not has_mean):
            picture.ax.stairs(_values(one, "high") / size, edges, baseline=_values(one, "low") / size, fill=True,
                              color=style["color"], alpha=0.2, linewidth=0)
        picture.ax.stairs(_values(one, "mean") / size, edges, baseline=None, label=_label(one),
                          linewidth=0.6 if has_mean and one["line"] == "part" else 1.2, **style)


def _reports(picture: Picture, one: Json) -> None:
    """Reported values are points, joined by a line."""
    import numpy
    edges, values = picture.edges(), _values(one, "mean")
    known = ~numpy.isnan(values)
    picture.ax.plot(((edges[:-1] + edges[1:]) / 2)[known], values[known], marker=".", color=picture.colour("target"))


def _chart(picture: Picture, chart: Json) -> None:
    series, ax = chart["series"], picture.ax
    highest = max(s["highest"] for s in series if s["highest"] is not None)
    size, unit = unit_for(chart["unit"], highest)
    title = short(chart["title"])
    if chart["id"].startswith("metric:"):
        _reports(picture, series[0])
    elif chart["style"] == "stacked":
        _stack(picture, series, size)
    else:
        _lines(picture, series, size)
    ceiling = chart["ceiling"]
    if ceiling is not None and ceiling <= 1.25 * highest:
        ax.axhline(ceiling / size, color=picture.colour("faint"), linestyle="--", linewidth=0.8)
    if chart["unit"] == "c":  # temperatures have no natural zero
        ax.set_ylim(min(s["lowest"] for s in series) - 3, highest + 3)
    elif chart["unit"]:
        ax.set_ylim(bottom=0)
    ax.set_ylabel(f"{title}, {unit}" if unit and unit.lower() != title.lower() else title)
    if not chart["id"].startswith("metric:"):
        _legend(picture)
    picture.finish_time()


def _spans(picture: Picture, _: Any = None) -> None:
    ax, charts = picture.ax, picture.charts
    lanes = charts["lanes"][:LANES]
    for row, lane in enumerate(lanes):
        by_colour: dict[str, list[tuple[float, float]]] = {}
        for from_s, to_s, block, *_rest in lane["items"]:
            colour = picture.block_colour(block)
            by_colour.setdefault(colour, []).append((from_s / picture.time_size, (to_s - from_s) / picture.time_size))
        for colour, boxes in by_colour.items():
            ax.broken_barh(boxes, (row - 0.42, 0.84), facecolors=colour, alpha=0.7)
    names = [f"{short(lane['process'])[:20]} {'ranges' if lane['is_range'] else lane['tid'] or lane['pid']}"
             if lane["depth"] == 0 else "" for lane in lanes]
    ax.set_yticks(range(len(lanes)), names)
    ax.set_ylim(len(lanes) - 0.5, -0.5)
    picture.finish_time()


def _blocks(picture: Picture, _: Any = None) -> None:
    known = [b for b in picture.report["blocks"] if b["energy"]["total_j"] is not None]
    best = sorted(known, key=lambda block: -float(block["energy"]["total_j"]))[:BLOCKS]
    size, unit = unit_for("j", best[0]["energy"]["total_j"])
    order = {name: number for number, name in enumerate(picture.charts["blocks"])}
    energies = [block["energy"]["total_j"] / size for block in best]
    errors = [(block["energy"]["error_j"] or 0) / size for block in best]
    colours = [picture.block_colour(order.get(block["name"])) for block in best]
    provenance = picture.report["energy"]["provenance"]
    picture.ax.barh(range(len(best)), energies, xerr=[[min(e, x) for e, x in zip(errors, energies)], errors],
                    color=colours, alpha=0.85, height=0.7, **_hatched(provenance),
                    error_kw={"linewidth": 1, "capsize": 2, "ecolor": picture.colour("ink")})
    picture.ax.set_yticks(range(len(best)), [short(block["name"]) for block in best])
    picture.ax.invert_yaxis()
    picture.ax.set_xlim(left=0)
    picture.ax.set_xlabel(f"energy of this program, {unit} ({provenance})")


OWNERS = (("target_j", "this program", "target"), ("others_j", "other programs", "others"),
          ("wattle_j", "wattle itself", "wattle"), ("idle_j", "idle", "idle"),
          ("unattributed_j", "unattributed", "unattributed"))


def _ledger(picture: Picture, _: Any = None) -> None:
    energy, left = picture.report["energy"], 0.0
    size, unit = unit_for("j", energy["total_j"])
    for key, words, colour in OWNERS:
        width = (energy["ledger"][key] or 0) / size  # idle energy may be unknown
        if width > 0:
            picture.ax.barh([0], [width], left=[left], color=picture.colour(colour), height=0.5,
                            label=f"{words} {100 * width * size / energy['total_j']:.1f} %",
                            **_hatched(energy["provenance"]))
        left += width
    picture.ax.set_yticks([])
    picture.ax.set_ylim(-0.5, 0.5)
    picture.ax.set_xlim(0, left)
    picture.ax.set_xlabel(f"energy, {unit} ({energy['provenance']})")
    _legend(picture)


def _kinds(report: Json, charts: Json) -> dict[str, tuple[Callable[[Picture, Any], None], Any]]:
    """Kinds available for this run, in order of importance."""
    kinds: dict[str, tuple[Callable[[Picture, Any], None], Any]] = {
        chart["id"]: (_chart, chart) for chart in charts["charts"]}
    if charts["lanes"]:
        kinds["spans"] = (_spans, None)
    if any(block["energy"]["total_j"] is not None for block in report.get("blocks") or ()):
        kinds["blocks"] = (_blocks, None)
    if (report["energy"]["total_j"] or math.nan) > 0:
        kinds["ledger"] = (_ledger, None)
    return kinds


def plot(report: Json, charts: Json, kind: Optional[str], ax: Optional[Axes]) -> Axes:
    """See Report.plot."""
    kinds = _kinds(report, charts)
    if not kinds:
        raise ValueError("this run has nothing to show: it is too short, or nothing was measured")
    if kind is not None and kind not in kinds:
        raise ValueError(f"this run has no picture {kind!r}; it has {', '.join(kinds)}")
    axes: Any = ax
    if ax is None:
        import matplotlib.pyplot
        axes = matplotlib.pyplot.subplots(figsize=(9, 3.6), layout="constrained")[1]
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    draw, what = kinds[kind if kind is not None else next(iter(kinds))]
    draw(Picture(report, charts, axes), what)
    return axes
