"""The list over HTTP: order, tags and notes, the trash, and many experiments at once."""

from __future__ import annotations

from typing import Any

import pytest

from tests.app.commands.test_serve import call
from tests.app.servers import Server


def names(server: Server, **query: Any) -> list[str]:
    """The names of all pages of two."""
    found: list[str] = []
    cursor: dict[str, str] = {}
    while True:
        page = server.client.get("/api/experiments", params={"limit": 2, **query, **cursor}).json()
        found += [item["name"] for item in page["items"]]
        if page["next"] is None:
            return found
        cursor = {"cursor": page["next"]}


def test_pages_follow_the_requested_order(bare: Server) -> None:
    for name in ("order b", "Order A", "order c"):
        bare.submit(name=name)
    assert names(bare, search="order ", sort="name") == ["Order A", "order b", "order c"]
    assert names(bare, search="order ", sort="-name") == ["order c", "order b", "Order A"]
    assert names(bare, search="order ", sort="created") == ["order b", "Order A", "order c"]
    assert names(bare, search="order ", sort="rise") == ["order c", "Order A", "order b"], "no values: newest first"


@pytest.mark.parametrize("query", [{"sort": "colour"}, {"sort": "name", "cursor": "WyItY3JlYXRlZCIsbnVsbCwxXQ"}])
def test_an_unknown_order_or_a_cursor_of_another_one_is_refused(bare: Server, query: dict[str, str]) -> None:
    assert bare.client.get("/api/experiments", params=query).status_code == 422


def test_a_finished_experiment_has_its_figures_in_the_list(lively: Server, done: str) -> None:
    row = lively.client.get(f"/api/experiments/{done}").json()
    verdict = lively.client.get(f"/api/experiments/{done}/verdict").json()
    altsdp = lively.client.get(f"/api/experiments/{done}/minima").json()["minima"]["altsdp"]
    assert row["rise"] == verdict["line"]["rise"]["value"]
    assert row["barrier"] == verdict["line"]["barrier"]
    assert row["control_barrier"] is None
    assert row["accuracy"] == pytest.approx(altsdp["final"]["test_accuracy"])
    zero, groups = (sum(layer[name] for layer in altsdp["layers"]) for name in ("zero_groups", "groups"))
    assert row["zero_groups"] == pytest.approx(zero / groups)
    assert row in [item | {key: row[key] for key in row.keys() - item.keys()} for item in _items(lively, sort="-rise")]


def _items(server: Server, **query: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = server.client.get("/api/experiments", params=query).json()["items"]
    return found


def test_name_tags_and_note_can_be_changed_and_searched(bare: Server) -> None:
    path = f"/api/experiments/{bare.submit(name='plain')}"
    changed = bare.client.patch(path, json={"name": "chosen", "tags": ["Paper", "for Anna", "paper"]})
    assert changed.status_code == 200, changed.text
    assert changed.json()["tags"] == ["Paper", "for Anna"]
    row = bare.client.patch(path, json={"note": "the flattest of all"}).json()
    assert (row["name"], row["tags"], row["note"]) == ("chosen", ["Paper", "for Anna"], "the flattest of all")
    assert names(bare, tag="paper") == names(bare, tag="for anna") == names(bare, search="FLATTEST") == ["chosen"]
    assert names(bare, tag="pape") == names(bare, tag="%") == []
    assert bare.client.patch(path, json={"tags": [], "note": ""}).json()["tags"] == []
    assert names(bare, tag="paper") == []


@pytest.mark.parametrize(
    "change", [{"name": ""}, {"tags": ["a,b"]}, {"tags": ["two\nlines"]}, {"tags": [" a"]}, {"state": "done"}]
)
def test_a_wrong_description_is_refused_by_its_field(bare: Server, change: dict[str, Any]) -> None:
    refused = bare.client.patch(f"/api/experiments/{bare.submit()}", json=change)
    assert refused.status_code == 422
    assert refused.json()["errors"][0]["path"].startswith(next(iter(change)))


def test_many_are_deleted_and_restored_at_once_each_with_its_outcome(bare: Server) -> None:
    first, second = bare.still(name="bulk 1"), bare.still(name="bulk 2")
    waiting = bare.submit(name="bulk 3")

    def act(action: str, *ids: str) -> list[tuple[bool, str | None]]:
        answer = bare.client.post("/api/experiments/bulk", json={"action": action, "ids": ids})
        assert answer.status_code == 200, answer.text
        return [(item["ok"], item["code"]) for item in answer.json()["items"]]

    assert act("delete", first, waiting, "nobody", second) == [
        (True, None),
        (False, "wrong-state"),
        (False, "unknown"),
        (True, None),
    ]
    assert names(bare, search="bulk ") == ["bulk 3"]
    assert names(bare, search="bulk ", trash=True) == ["bulk 2", "bulk 1"]
    assert act("restore", first, second) == [(True, None), (True, None)]
    assert names(bare, search="bulk ") == ["bulk 3", "bulk 2", "bulk 1"]
    assert act("cancel", waiting, first) == [(True, None), (False, "wrong-state")]


def test_many_are_tagged_at_once_and_keep_the_tags_they_have(bare: Server) -> None:
    first, second = bare.still(name="tagged 1"), bare.still(name="tagged 2")
    bare.client.patch(f"/api/experiments/{first}", json={"tags": ["Paper", "old"]})

    def act(action: str, *tags: str) -> list[list[str]]:
        body = {"action": action, "ids": [first, second], "tags": tags}
        answer = bare.client.post("/api/experiments/bulk", json=body)
        assert [item["ok"] for item in answer.json()["items"]] == [True, True]
        return [item["tags"] for item in _items(bare, search="tagged ", sort="name")]

    assert act("tag", "paper", "wide") == [["Paper", "old", "wide"], ["paper", "wide"]]
    assert act("untag", "PAPER") == [["old", "wide"], ["wide"]]


@pytest.mark.parametrize(
    "body", [{"action": "tag"}, {"action": "delete", "tags": ["a"]}, {"action": "tag", "tags": [""]}]
)
def test_tags_are_given_where_they_mean_something(bare: Server, body: dict[str, Any]) -> None:
    refused = bare.client.post("/api/experiments/bulk", json=body | {"ids": [bare.submit()]})
    assert refused.status_code == 422
    assert refused.json()["errors"][0]["path"].startswith("tags")


def test_many_leave_the_trash_for_good(bare: Server) -> None:
    gone = bare.still(name="for good")
    for body in ({"action": "delete"}, {"action": "delete", "permanent": True}):
        answer = bare.client.post("/api/experiments/bulk", json=body | {"ids": [gone]})
        assert answer.json()["items"][0]["ok"]
    assert names(bare, search="for good", trash=True) == names(bare, search="for good") == []


def test_some_experiments_are_asked_for_by_their_ids(bare: Server) -> None:
    ids = [bare.submit(name=f"chosen {number}") for number in range(3)]
    assert names(bare, ids=f"{ids[0]},{ids[2]}", sort="name") == ["chosen 0", "chosen 2"]
    assert names(bare, ids=f"{ids[0]},{ids[1]}", search="chosen 1") == ["chosen 1"]
    assert bare.client.get("/api/experiments", params={"ids": "nobody"}).status_code == 422


def test_the_command_deletes_and_takes_back(bare: Server) -> None:
    first, second = bare.still(name="by command"), bare.still(name="by command")
    assert call(bare, "delete", first, second).returncode == 0
    assert names(bare, search="by command") == []
    assert call(bare, "delete", "--undo", first).stdout == f"{first} restored\n"
    assert len(names(bare, search="by command")) == 1
    assert call(bare, "delete", "--permanent", first, second).returncode == 0
    assert names(bare, search="by command", trash=True) == []
    gone = call(bare, "delete", first)
    assert (gone.returncode, "no experiment" in gone.stdout) == (1, True)
