"""Drivers, which store and read recordings: a folder of JSON files, or a database."""
from ._driver import Driver
from ._json_driver import JsonParser
from ._records import SEGMENT_END
from ._sql_driver import SqlParser

__all__ = ["Driver", "JsonParser", "SEGMENT_END", "SqlParser"]
