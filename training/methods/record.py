"""What is recorded of a pruning method: numbers, and one sentence for people."""

from __future__ import annotations

from typing import Any

from valleyscope.training.epochs import Epoch
from valleyscope.training.methods.cut import has_collapsed
from valleyscope.training.methods.method import RunContext


def described_pruning(context: RunContext, facts: dict[str, Any], final: Epoch) -> dict[str, Any]:
    """The record of a run: its method and wish, what happened, what is left, and a sentence."""
    settings = context.settings
    record: dict[str, Any] = {"method": settings.method_name, "zero_groups": final.zero_groups}
    if settings.structure == "filter":
        record["macs"] = context.operations.share()
    record |= {
        f"wished_{name}": value for name in ("sparsity", "macs") if (value := getattr(settings, name)) is not None
    }
    if settings.of is not None:
        record["of"] = settings.of
    record |= facts
    record["collapsed"] = has_collapsed(context, final.test_accuracy)
    return record | {"text": pruning_text(record, retrained=settings.retrain is not None)}


def pruning_text(record: dict[str, Any], *, retrained: bool = False) -> str:
    """One line for tables.

    >>> pruning_text({"method": "altsdp", "threshold_ended": {"epoch": 48, "step": 9, "threshold": 2.2}})
    'threshold ended at epoch 48, G = 2.2'
    """
    parts = []
    ended, cut = record.get("threshold_ended"), record.get("cut")
    if ended is not None:
        parts.append(f"threshold ended at epoch {ended['epoch']}, G = {ended['threshold']:.3g}")
        if ended.get("cut_groups"):
            parts.append(f"{ended['cut_groups']} groups were still missing and were cut by norm")
    if (found := record.get("direction_factors")) is not None:
        spread = f"{found['smallest']:.2f} to {found['largest']:.2f}"
        parts.append(
            f"λ = {record['strength']:.3g}, s " + (f"from {spread}" if found["source"] == "hessian" else "= 1")
        )
    if cut is not None:
        quantity, shown = ("accuracy", _percent) if "test_accuracy_before" in cut else ("loss", _short)
        before, after = (shown(cut[f"test_{quantity}_{when}"]) for when in ("before", "after"))
        lost = f"test {quantity} {before} before, {after} after"
        if f"test_{quantity}_stale" in cut:
            lost += f" ({shown(cut[f'test_{quantity}_stale'])} with stale BatchNorm statistics)"
        when = f"after epoch {cut['epoch']}" if cut["epoch"] else "at the start"
        parts.append(f"cut {when}: {lost}")
        if cut["collapsed"]:
            parts.append("the cut network had collapsed: no better than guessing")
        if retrained:
            parts.append("retrained")
    if record.get("collapsed") and not (cut is not None and cut["collapsed"] and not retrained):
        parts.append("collapsed: no better than guessing")
    return "; ".join(parts)


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _short(value: float) -> str:
    return f"{value:.4g}"
