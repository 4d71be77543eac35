"""One reading of all energy counters under /sys/class/powercap, and the difference of two.

For single samples. Recordings do not use this: wattle's recorder reads often enough to see every wrap.
"""
from __future__ import annotations

import os
import pathlib
import time
from typing import Iterator, Optional

UJOULES, JOULES, WATT_HOURS = 1, 2, 3
UNITS_J = {UJOULES: 1e-6, JOULES: 1.0, WATT_HOURS: 3600.0}  #: joules per unit
rapl_dir = os.path.join(os.environ.get("WATTLE_SYSFS") or "/sys", "class/powercap")


def _read(path: pathlib.Path) -> str:
    return path.read_text(encoding="ascii").strip()


def zones() -> Iterator[pathlib.Path]:
    """Folders of the RAPL domains, `intel-rapl:0` before `intel-rapl:0:1`; not those of another interface (mmio)."""
    top = pathlib.Path(rapl_dir)
    names = {path.name: path for path in top.glob("**/intel-rapl:*") if (path / "energy_uj").exists()}
    yield from (names[name] for name in sorted(names, key=lambda name: [int(word) for word in name.split(":")[1:]]))


class RAPLDomain:
    """A domain: name, id (`intel-rapl:0:1`), values and max_values in uJ, its subdomains by name."""

    def __init__(self, name: str, id: str, energy_uj: int, max_energy_range_uj: Optional[int]) -> None:
        self.name, self.id = name, id
        self.values = {"energy_uj": energy_uj}
        self.max_values = {"energy_uj": max_energy_range_uj}
        self.subdomains: dict[str, RAPLDomain] = {}

    @classmethod
    def construct(cls, id: str, path: "os.PathLike[str]") -> "RAPLDomain":
        """Reads it. Raises PermissionError if only root may: `wattle sensors` states the remedy."""
        folder = pathlib.Path(path)
        largest = folder / "max_energy_range_uj"
        return cls(_read(folder / "name"), id, int(_read(folder / "energy_uj")),
                   int(_read(largest)) if largest.exists() else None)

    def is_subdomain(self) -> bool:
        return self.id.count(":") > 1

    def parent_id(self) -> str:
        return ":".join(self.id.split(":")[:2])

    def __sub__(self, other: "RAPLDomain") -> "RAPLDomain":
        """Energy from other to self, over at most one wrap of the counter."""
        if (self.name, self.id) != (other.name, other.id):
            raise ValueError(f"{self.id} ({self.name}) and {other.id} ({other.name}) are different domains")
        used_uj = self.values["energy_uj"] - other.values["energy_uj"]
        largest_uj = self.max_values["energy_uj"]
        if used_uj < 0:
            if largest_uj is None:
                raise ValueError(f"{self.id}: the counter decreased and its range is unknown")
            used_uj += largest_uj + 1
        return RAPLDomain(self.name, self.id, used_uj, largest_uj)

    def __repr__(self) -> str:
        return f"{self.name}: energy_uj={self.values['energy_uj']}"


class RAPLSample:
    """All counters at a time; `domains`: the packages and psys by name, `domains_by_id`: all."""

    def __init__(self, domains: dict[str, RAPLDomain]) -> None:
        self.domains_by_id = domains
        self.domains: dict[str, RAPLDomain] = {}
        self.time_s = time.monotonic()
        for domain in domains.values():
            parent = domains.get(domain.parent_id()) if domain.is_subdomain() else None
            (self.domains if parent is None else parent.subdomains)[domain.name] = domain

    @classmethod
    def take_sample(cls) -> "RAPLSample":
        """Reads all. Raises ValueError if there is none."""
        domains = {path.name: RAPLDomain.construct(path.name, path) for path in zones()}
        if not domains:
            raise ValueError(f"no RAPL counters in {rapl_dir}")
        return cls(domains)

    def __sub__(self, other: "RAPLSample") -> "RAPLDifference":
        gone = sorted(set(self.domains_by_id) ^ set(other.domains_by_id))
        if gone:
            raise ValueError(f"{', '.join(gone)}: only in one of the two samples")
        return RAPLDifference({id: domain - other.domains_by_id[id] for id, domain in self.domains_by_id.items()},
                              self.time_s - other.time_s)

    def energy(self, package: str, domain: Optional[str] = None, unit: int = UJOULES) -> float:
        """A domain's energy, of a subdomain if `domain` is given. unit: UJOULES, JOULES or WATT_HOURS."""
        place = self.domains[package] if not domain else self.domains[package].subdomains[domain]
        energy_uj = place.values["energy_uj"]
        return energy_uj if unit == UJOULES else energy_uj * 1e-6 / UNITS_J[unit]


class RAPLDifference(RAPLSample):
    """Energy between two samples, duration seconds apart."""

    def __init__(self, domains: dict[str, RAPLDomain], duration: float) -> None:
        super().__init__(domains)
        self.duration = duration

    def average_power(self, package: str, domain: Optional[str] = None, unit: int = JOULES) -> float:
        """unit per second: W for JOULES. Raises ValueError if no time has passed."""
        if self.duration <= 0:
            raise ValueError("no time between the two samples")
        return self.energy(package, domain, unit=unit) / self.duration


class RAPLMonitor:
    """AIPowerMeter's other name for RAPLSample.take_sample."""

    @classmethod
    def sample(cls) -> RAPLSample:
        return RAPLSample.take_sample()
