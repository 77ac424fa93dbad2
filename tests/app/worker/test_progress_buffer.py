"""Progress of a task becomes its share and events."""

from __future__ import annotations

from valleyscope.app.experiments.plan import Kind, Task
from valleyscope.app.worker.child_process import Advance
from valleyscope.app.worker.progress_buffer import ProgressBuffer


def products(done: int, expected: int) -> Advance:
    return Advance(done / expected, {"products": done, "expected": expected})


def test_a_search_tells_its_newest_count_of_products_also_when_it_takes_more_than_expected() -> None:
    buffer = ProgressBuffer(Task(Kind.DIRECTIONS, "sgd"))
    for done in (1, 2, 3):
        buffer.add(products(done, 100))
    counted = {"working": "directions:sgd", "share": 0.03, "products": 3, "expected": 100}
    assert buffer.flush() == (0.03, [("progress", counted)])
    assert buffer.flush() == (0.03, [])
    buffer.add(products(4, 400))
    assert buffer.flush() == (0.01, [("progress", counted | {"share": 0.01, "products": 4, "expected": 400})])
