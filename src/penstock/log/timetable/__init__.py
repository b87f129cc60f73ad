"""The timetable: messages that wait for their time."""

from penstock.log.timetable.recovery import is_moved
from penstock.log.timetable.run import Entry, Slice
from penstock.log.timetable.timetable import FOLDER, SLICE, Timetable

__all__ = ["FOLDER", "SLICE", "Entry", "Slice", "Timetable", "is_moved"]
