"""Curves of a recording, drawn by matplotlib."""
from __future__ import annotations

import itertools
import os
import sys
import warnings
from typing import TYPE_CHECKING, Any, Iterator, Optional

if TYPE_CHECKING:
    from ._curves import Curve
    from ._driver import PathLike
    from ._results import ExpResults

WITHOUT_SCREEN = "curves.png"
# Units of metrics whose name contains this part.
UNITS = {"power": "W", "draw": "W", "mem_use_abs": "bytes", "mem_use_uss": "bytes", "total_mem_use": "bytes"}


def _pyplot() -> Any:
    try:
        import matplotlib
        import matplotlib.pyplot
    except ImportError as error:
        raise ImportError("drawing needs matplotlib (Debian: python3-matplotlib)") from error
    return matplotlib.pyplot


def _lines(results: "ExpResults", name: str) -> dict[str, "Curve"]:
    """label -> curve; {} with a warning if there is no such metric."""
    curve = results.get_curve(name)
    if curve is None:
        warnings.warn(results.missing(name), RuntimeWarning, stacklevel=4)
        return {}
    return {f"{name}:{device}": one for device, one in curve.items()} if isinstance(curve, dict) else {name: curve}


def _with_unit(label: str) -> str:
    """Label of the curve's axis: "intel_power (W)"; other metrics' names are unchanged."""
    unit = next((unit for part, unit in UNITS.items() if part in label), None)
    return label if unit is None else f"{label} ({unit})"


def _draw(axes: Any, results: "ExpResults", lines: dict[str, "Curve"], colors: Iterator[str]) -> None:
    """One line for each label, with gaps between segments."""
    for label, segments in lines.items():
        color = next(colors)
        for number, segment in enumerate(segments):
            axes.plot([results.dated(point["date"]) for point in segment], [point["value"] for point in segment],
                      color=color, marker="o" if len(segment) == 1 else None,
                      label=None if number else _with_unit(label))


def _finish(pyplot: Any, figure: Any, saveto: Optional["PathLike"]) -> Optional[str]:
    import matplotlib
    figure.autofmt_xdate(rotation=45)
    shown = matplotlib.get_backend().lower() not in ("agg", "cairo", "pdf", "pgf", "ps", "svg", "template")
    if saveto is None and shown:
        pyplot.show()
        return None
    name = os.fspath(saveto) if saveto is not None else WITHOUT_SCREEN
    figure.savefig(name, bbox_inches="tight")
    pyplot.close(figure)
    if saveto is None:
        print(f"no screen to show curves on: they are in {os.path.abspath(name)}", file=sys.stderr)
    return name


def _colors() -> Iterator[str]:
    return itertools.cycle([f"C{number}" for number in range(10)])


def curves(results: "ExpResults", names: list[str], saveto: Optional["PathLike"]) -> Optional[str]:
    """ExpResults.display_curves."""
    if isinstance(names, str):
        raise TypeError(f"metric_names must be a list of names, such as ['{names}']")
    lines: dict[str, "Curve"] = {}
    for name in names:
        lines.update(_lines(results, name))
    if not lines:
        return None
    pyplot = _pyplot()
    figure, axes = pyplot.subplots()
    _draw(axes, results, lines, _colors())
    axes.legend()
    return _finish(pyplot, figure, saveto)


def two_curves(results: "ExpResults", name1: str, name2: str, saveto: Optional["PathLike"]) -> Optional[str]:
    """ExpResults.display_2_curves."""
    drawn: list[tuple[str, dict[str, "Curve"]]] = []
    for name in (name1, name2):
        lines = _lines(results, name)
        if lines:
            drawn.append((name, lines))
    if not drawn:
        return None
    pyplot = _pyplot()
    figure, axes = pyplot.subplots()
    colors = _colors()
    for number, (name, lines) in enumerate(drawn):
        side = axes if number == 0 else axes.twinx()
        _draw(side, results, lines, colors)
        side.set_ylabel(_with_unit(name), fontsize=14, color=side.get_lines()[0].get_color())
    figure.legend(loc="upper center", ncol=2)  # clear of the exponents above the axes
    return _finish(pyplot, figure, saveto)
