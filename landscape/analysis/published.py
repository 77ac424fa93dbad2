"""Accuracies and savings that the paper "Structured Directional Pruning" prints; not measured here."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path
from typing import Any

SOURCE = "Li, Liu, Shao, Wang and Geng, Structured Directional Pruning"
_NETWORKS = {"vgg16_bn": "vgg16", "resnet56": "resnet56"}


def published_numbers(dataset: str, model: str) -> list[dict[str, Any]]:
    """The rows of the paper's tables for a data set and a network; empty for others.

    >>> [row["pruned_accuracy"] for row in published_numbers("cifar10", "vgg16_bn") if row["method"] == "AltSDP"]
    [0.9397]
    """
    with (Path(__file__).parent / "published.csv").open(encoding="utf-8", newline="") as file:
        rows = [
            row for row in csv.DictReader(file) if (row["dataset"], row["model"]) == (dataset, _NETWORKS.get(model))
        ]
    return [
        {
            "method": row["method"],
            "baseline_accuracy": round(float(row["baseline_acc"]) / 100, 4),
            "pruned_accuracy": round(float(row["pruned_acc"]) / 100, 4),
            "macs": round(1 - float(row["flops_reduction"]), 4),
            "source": f"{SOURCE}, {row['table']}",
        }
        for row in rows
    ]


def published_beside(spec: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The rows for the network and the data of a comparison of methods; empty for other experiments."""
    if not spec.get("methods"):
        return []
    model = spec.get("model") or {}
    return published_numbers(spec.get("dataset", ""), model if isinstance(model, str) else model.get("name", ""))
