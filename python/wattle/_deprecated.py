"""Deprecated names of the package: they work until the release after `since`, with a DeprecationWarning."""
import warnings

NAMES = {  # old name in the module `wattle`: (new name, since)
    "combine": ("merge", "0.1.0"),
}


def current(name: str) -> str:
    """The current name of a deprecated one; warns the caller of the attribute."""
    new, since = NAMES[name]
    warnings.warn(f"wattle.{name} is deprecated since {since}; use wattle.{new}", DeprecationWarning, stacklevel=3)
    return new
