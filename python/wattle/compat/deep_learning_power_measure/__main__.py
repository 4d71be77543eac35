"""python3 -m wattle.compat.deep_learning_power_measure --output_folder F [--cmd "…" [--cont True]] [--curve a,b]"""
import sys

from ._program import main

sys.exit(main())
