"""Datasets, their partition among clients, and their drift from slot to slot."""

from fedaccord.data.dataset import Dataset, load_dataset
from fedaccord.data.own import OwnPartition, load_folder, own_partition
from fedaccord.data.partition import Partition, RandomPartition, SkewedPartition
from fedaccord.data.scale import examples_for

__all__ = [
    "Dataset",
    "OwnPartition",
    "Partition",
    "RandomPartition",
    "SkewedPartition",
    "examples_for",
    "load_dataset",
    "load_folder",
    "own_partition",
]
