"""Compact networks for other programs: torch.export archives and ONNX."""

from __future__ import annotations

import logging
import os
import tempfile
import warnings
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch

from valleyscope.training.compaction.compact import Compact

_ONNX_PACKAGES = ("onnx", "onnxscript")


def onnx_is_installed() -> bool:
    """Whether the packages of the extra `onnx` are there."""
    return all(find_spec(package) is not None for package in _ONNX_PACKAGES)


def export_program(path: str | Path, network: Compact) -> None:
    """Write a torch.export archive (.pt2) for any number of samples; torch.export.load reads it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = torch.export.export(network.model.cpu(), _example(network), dynamic_shapes=_shapes(network))
    with _replacing(Path(path)) as temporary:
        torch.export.save(program, temporary)


def export_onnx(path: str | Path, network: Compact) -> None:
    """Write an ONNX file, weights included, for any number of samples, with inputs `input` and output `output`."""
    if not onnx_is_installed():
        raise ModuleNotFoundError(
            f"ONNX files need {' and '.join(_ONNX_PACKAGES)}: install them with pip install 'valleyscope[onnx]'"
        )
    names = ["input"] if len(network.example) == 1 else [f"input{i}" for i in range(1, len(network.example) + 1)]
    quiet = logging.getLogger("torch.onnx"), logging.getLogger("onnxscript"), logging.getLogger("onnx_ir")
    levels = [logger.level for logger in quiet]
    for logger in quiet:
        logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings(), _replacing(Path(path)) as temporary:
            warnings.simplefilter("ignore")
            torch.onnx.export(
                network.model.cpu(),
                _example(network),
                temporary,
                dynamo=True,
                verbose=False,
                external_data=False,
                input_names=names,
                output_names=["output"],
                dynamic_shapes=_shapes(network),
            )
    finally:
        for logger, level in zip(quiet, levels, strict=True):
            logger.setLevel(level)


def _example(network: Compact) -> tuple[torch.Tensor, ...]:
    # Two samples: with one, torch.export takes the number of samples for a constant.
    return tuple(torch.cat([x.cpu()[:1]] * 2) for x in network.example)


def _shapes(network: Compact) -> tuple[dict[int, Any], ...]:
    return tuple({0: torch.export.Dim("samples")} for _ in network.example)


class _replacing:  # noqa: N801
    """A temporary path beside another one, which it replaces if all goes well."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __enter__(self) -> str:
        self.folder = tempfile.TemporaryDirectory(dir=self.path.parent)
        self.file = Path(self.folder.name) / self.path.name
        return str(self.file)

    def __exit__(self, kind: object, *_: object) -> None:
        try:
            if kind is None:
                os.replace(self.file, self.path)  # noqa: PTH105
        finally:
            self.folder.cleanup()
