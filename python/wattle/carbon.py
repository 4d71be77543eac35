"""Carbon intensity of electricity by country: a table of the package, without a network.

    wattle.carbon.region("DE").g_per_kwh            # also "DEU" and "Germany"
    wattle.carbon.grams(m.energy_j, "DE", pue=1.2)  # CO2 equivalent of an energy in J
    wattle.Tracker(carbon_region="DE")              # tracker.energy.carbon_g

The figures are means of a year and count emissions over the life of the power plants; SOURCE is their source.
"""
from __future__ import annotations

from typing import NamedTuple, Optional

from . import _wattle

SOURCE = _wattle.CARBON_SOURCE  #: of all figures

_J_PER_KWH = 3.6e6


class Region(NamedTuple):
    """A country."""

    code: str  #: ISO 3166-1 alpha-2
    code3: str  #: ISO 3166-1 alpha-3
    name: str
    g_per_kwh: float  #: grams of CO2 equivalent per kWh of generated electricity
    year: int  #: of which it is the mean


def regions() -> list[Region]:
    """All countries, by code."""
    return [Region(*row) for row in _wattle.carbon_regions()]


def region(country: str) -> Region:
    """A country by its ISO 3166 code ("DE", "DEU") or name, in any case. ValueError names the nearest one."""
    return Region(*_wattle.carbon_region(country))


def grams(energy_j: Optional[float], country: str, pue: float = 1.0) -> Optional[float]:
    """CO2 equivalent of an energy in grams; pue is the power usage effectiveness. An unknown energy (None, NaN) stays
    unknown."""
    g_per_kwh = region(country).g_per_kwh
    return None if energy_j is None else energy_j * pue / _J_PER_KWH * g_per_kwh
