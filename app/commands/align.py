"""`valley align`: write a checkpoint with its hidden units in the order of another."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

if TYPE_CHECKING:
    from torch import nn


def add_align_command(commands: Any) -> None:
    parser = commands.add_parser("align", help="bring the hidden units of a network into the order of another")
    parser.add_argument("reference", type=Path, metavar="A", help="a checkpoint (.safetensors) of a run: the reference")
    parser.add_argument("network", type=Path, metavar="B", help="a checkpoint of the same model, which is aligned to A")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="where the aligned B is written")
    parser.add_argument(
        "--by", choices=("weights", "activations"), default="weights", help="how units are matched (default: weights)"
    )
    parser.add_argument("--model", metavar="NAME", help="for files of other programs: the model, such as mlp")
    parser.add_argument("--dataset", metavar="NAME", help="for files of other programs: its data set, such as digits")
    parser.add_argument("--data", type=Path, metavar="DIR", help="directory of data sets (default: VALLEY_DATA)")
    parser.set_defaults(run=align_files)


def align_files(options: argparse.Namespace, console: Console) -> int:
    from valleyscope.app.settings import Settings
    from valleyscope.landscape.alignment.align import Aligner
    from valleyscope.training import build_model, load_dataset
    from valleyscope.training.checkpoints import check_state, read_checkpoint, save_checkpoint

    first, second = (read_checkpoint(file) for file in (options.reference, options.network))
    described = {"model": options.model, "dataset": options.dataset}
    described = {key: value or second.spec.get(key) or first.spec.get(key) for key, value in described.items()}
    if missing := [key for key, value in described.items() if value is None]:
        raise ValueError(
            f"{options.network} does not say its {' and '.join(missing)}: give "
            f"{' and '.join(f'--{key}' for key in missing)}; in Python, use valleyscope.align(model, weights, to=...)"
        )
    data = load_dataset(described["dataset"], root=options.data or Settings.load().data)
    model: nn.Module = build_model(described["model"], data)
    for checkpoint, file in ((first, options.reference), (second, options.network)):
        check_state(checkpoint.state, model, source=str(file))
    pair = (data.x_train, data.y_train)
    found = Aligner(model, first.state, pair, method=options.by).align(second.state, str(options.network))
    model.load_state_dict(found.state)
    save_checkpoint(options.out, model, spec=second.spec, metrics=second.metrics)
    console.print(
        f"{found.moved} of {found.units} hidden units moved (by {found.method}); distance in weight space "
        f"{found.distance_before:.4g} before, {found.distance_after:.4g} after; outputs differ by {found.change:.0e}",
        highlight=False,
    )
    for line in (*(f"left alone: {text}" for text in found.left_alone), str(options.out)):
        console.print(line, highlight=False, markup=False, soft_wrap=True)
    return 0
