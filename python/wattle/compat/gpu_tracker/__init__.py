"""gpu_tracker's interface on wattle: `import wattle.compat.gpu_tracker as gput` (docs/migrate-gpu-tracker.md)."""
from ..._wattle import VERSION as __version__
from .sub_tracker import SubTracker, SubTrackingAnalyzer, TrackingComparison, sub_track
from .tracker import Tracker

__all__ = ["SubTracker", "SubTrackingAnalyzer", "Tracker", "TrackingComparison", "sub_track", "__version__"]
