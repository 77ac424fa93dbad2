"""One progress bar for all steps of a comparison, with the time left."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from valleyscope.landscape.fitting.fit_curve import FittingProgress

Share = Callable[[int, int], object]


class ComparisonProgress:
    """Shares of the steps of a comparison; ``on_change`` gets the step and the share of all steps that is done."""

    def __init__(self, steps: Sequence[str], on_change: Callable[[str, float], object]) -> None:
        self._shares = dict.fromkeys(steps, 0.0)
        self._on_change = on_change

    def share(self, step: str) -> Share:
        """A callback of work done and total work for a step."""
        return lambda done, total: self._set(step, done / total)

    def fitting(self, step: str) -> Callable[[FittingProgress], object]:
        """A callback of the fit of a curve."""
        return lambda found: self._set(step, found.share)

    def _set(self, step: str, share: float) -> None:
        self._shares[step] = share
        self._on_change(step, sum(self._shares.values()) / len(self._shares))


@contextmanager
def comparison_progress(steps: Sequence[str], *, shown: bool) -> Iterator[ComparisonProgress]:
    """A progress bar in the terminal or notebook while the steps run; nothing unless ``shown``."""
    if not shown:
        yield ComparisonProgress(steps, lambda *_: None)
        return
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns) as bar:
        task = bar.add_task("compare", total=1.0)
        yield ComparisonProgress(steps, lambda step, share: bar.update(task, description=step, completed=share))
