"""wattle: where in a program time, CPU and joules go.

    with wattle.span("forward"):        # a code block; also a decorator, and for `async with`
        ...
    wattle.metric("images", 64)         # joules per image

Spans and metrics reach whoever records: `wattle run` around the program, or a tracker in it. Without one they cost some
nanoseconds and do nothing. Needs nothing but Python; numpy and pandas are used where they are asked for.
"""
from ._wattle import VERSION as __version__
from ._wattle import is_recording, mark, metric, range_begin, range_end, span

__all__ = ["is_recording", "mark", "metric", "range_begin", "range_end", "span", "__version__"]
