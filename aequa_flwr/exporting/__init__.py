"""A reward in the forms that other programs read, each checked against the original's logits."""

from aequa_flwr.exporting.formats import FORMATS, Exported, ExportError, Format, export_reward

__all__ = ["FORMATS", "ExportError", "Exported", "Format", "export_reward"]
