"""Results of sub-tracking as in gpu_tracker: pandas inside, JSON and text outside."""
from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, Collection, Iterator, Mapping

if TYPE_CHECKING:
    import pandas

STATISTICS = ("min", "max", "mean", "std")


@dataclasses.dataclass
class CodeBlockResults:
    """A code block: compute_time in seconds (min, max, mean, std, total), resource_usage with a row for each metric and the
    columns min, max, mean, std (population) over the timepoints inside its calls, in the units of the tracking file."""

    name: str
    num_timepoints: int  # : each counts once, however many calls contain it
    num_calls: int
    num_non_empty_calls: int  #: with a timepoint inside
    compute_time: pandas.Series
    resource_usage: pandas.DataFrame


@dataclasses.dataclass
class SubTrackingResults:
    """A tracking session: figures over all timepoints, the static data of its file, and its code blocks."""

    overall: pandas.DataFrame
    static_data: pandas.Series
    code_block_results: list[CodeBlockResults]

    def to_json(self) -> dict[str, Any]:
        """The same as dictionaries: `overall` and `resource_usage` {metric: {statistic: value}}."""
        return {"overall": _rows(self.overall), "static_data": self.static_data.to_dict(),
                "code_block_results": [{**vars(block), "compute_time": block.compute_time.to_dict(),
                                        "resource_usage": _rows(block.resource_usage)}
                                       for block in self.code_block_results]}

    def __str__(self) -> str:
        blocks = [vars(block) for block in self.code_block_results]
        return _text({"overall": self.overall, "static_data": self.static_data, "code_block_results": blocks})

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> SubTrackingResults:
        """From to_json(), or from the output of `wattle blocks --format json`."""
        import pandas
        return cls(_frame(values["overall"]), pandas.Series(values["static_data"], dtype=object), [
            CodeBlockResults(block["name"], block["num_timepoints"], block["num_calls"], block["num_non_empty_calls"],
                             pandas.Series(block["compute_time"], dtype=float), _frame(block["resource_usage"]))
            for block in values["code_block_results"]])


@dataclasses.dataclass
class ComparisonResults:
    """One statistic of several sessions by metric, metric and block, block; each series ascends."""

    overall_resource_usage: dict[str, pandas.Series]
    code_block_resource_usage: dict[str, dict[str, pandas.Series]]
    code_block_compute_time: dict[str, pandas.Series]

    def to_json(self) -> dict[str, Any]:
        """The same with {session: value} for each series."""
        return {"overall_resource_usage": _dictionaries(self.overall_resource_usage),
                "code_block_resource_usage": {metric: _dictionaries(blocks)
                                              for metric, blocks in self.code_block_resource_usage.items()},
                "code_block_compute_time": _dictionaries(self.code_block_compute_time)}

    def __str__(self) -> str:
        return _text(vars(self), verbatim=self.code_block_compute_time)


def _rows(frame: pandas.DataFrame) -> dict[str, dict[str, Any]]:
    return {metric: row.to_dict() for metric, row in frame.iterrows()}


def _dictionaries(series: Mapping[str, pandas.Series]) -> dict[str, dict[str, Any]]:
    return {name: one.to_dict() for name, one in series.items()}


def _frame(rows: Mapping[str, Mapping[str, Any]]) -> pandas.DataFrame:
    import pandas
    return pandas.DataFrame.from_dict(rows, orient="index", columns=list(STATISTICS), dtype=float)


# ---- text, exactly as gpu_tracker writes it ----

def _text(values: Mapping[str, Any], verbatim: Collection[str] = ()) -> str:
    return "".join(f"{line}\n" for line in _lines(values, "", verbatim))


def _lines(values: Mapping[str, Any], indent: str, verbatim: Collection[str]) -> Iterator[str]:
    """One value on a line, one tab for each level. Keys become titles, except names of code blocks."""
    labels = {key: key if key in verbatim else key.replace("_", " ").title() for key in values}
    width = max(map(len, labels.values()), default=0)
    for key, value in values.items():
        if isinstance(value, (str, int, float)):
            shown = f"{value:.8f}" if isinstance(value, float) else value
            yield f"{indent}{labels[key] + ':':{width + 1}} {shown}"
            continue
        yield f"{indent}{labels[key]}:"
        if isinstance(value, dict):
            yield from _lines(value, indent + "\t", verbatim)
        elif isinstance(value, list):
            for item in value:
                yield from _lines(item, indent + "\t", verbatim)
                yield ""
        else:
            yield from (f"{indent}\t{line}" for line in _table(value).splitlines())


def _table(value: Any) -> str:
    if value.ndim == 1:
        value = value.to_frame().T.set_axis([""], axis="index")
    text: str = value.to_string(float_format=lambda number: str(round(float(number), 8)))
    return text
