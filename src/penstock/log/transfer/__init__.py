"""From an original nsqd's data folder to a data path, and back. Knows both; knows no broker."""

from penstock.log.transfer.exporting import export_folder
from penstock.log.transfer.importing import import_folder
from penstock.log.transfer.summary import ChannelCount, Summary, TopicCount

__all__ = ["ChannelCount", "Summary", "TopicCount", "export_folder", "import_folder"]
