"""Datasets, their partition among clients, and their drift from slot to slot."""

from fedaccord.data.dataset import Dataset, dataset_names, load_dataset, load_partition
from fedaccord.data.inputs import as_dataset, as_examples, scale_note
from fedaccord.data.notes import partition_notes
from fedaccord.data.own import OwnPartition, load_folder, own_partition, read_data
from fedaccord.data.partition import Partition, RandomPartition, SkewedPartition
from fedaccord.data.scale import examples_for

__all__ = [
    "Dataset",
    "OwnPartition",
    "Partition",
    "RandomPartition",
    "SkewedPartition",
    "as_dataset",
    "as_examples",
    "dataset_names",
    "examples_for",
    "load_dataset",
    "load_folder",
    "load_partition",
    "own_partition",
    "partition_notes",
    "read_data",
    "scale_note",
]


def __getattr__(name: str) -> object:
    if name == "whole_contributions":
        raise ImportError(
            "whole_contributions is now examples_for(contributions, scale), which rounds each "
            "client's contribution by itself"
        )
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
