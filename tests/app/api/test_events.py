"""Events over HTTP: in order, resumable, for a hundred at once."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from tests.app.servers import Server

WATCHERS = 100


def parsed(text: str) -> list[dict[str, Any]]:
    """The events of a stream; comments and the delay for reconnection are left out."""
    found = []
    for block in text.split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines() if not line.startswith(":"))
        if "id" in fields:
            found.append({"id": int(fields["id"]), "kind": fields["event"], "data": json.loads(fields["data"])})
    return found


def events(server: Server, id: str, **headers: str) -> list[dict[str, Any]]:
    response = server.client.get(f"/api/experiments/{id}/events", headers=headers)
    assert response.headers["content-type"].startswith("text/event-stream")
    return parsed(response.text)


def test_a_finished_experiment_tells_its_story_and_ends(lively: Server, done: str) -> None:
    story = events(lively, done)
    ids = [event["id"] for event in story]
    assert ids == sorted(set(ids))
    states = [event["data"]["state"] for event in story if event["kind"] == "state"]
    assert states == ["queued", "running", "done"]
    assert {"state", "epoch", "curve", "tile", "verdict"} <= {event["kind"] for event in story}
    points = sum(len(event["data"]["rows"]) for event in story if event["kind"] == "tile")
    assert points == 81


def test_a_stream_goes_on_after_the_last_event_that_was_seen(lively: Server, done: str) -> None:
    story = events(lively, done)
    middle = story[len(story) // 2]["id"]
    rest = [event for event in story if event["id"] > middle]
    assert events(lively, done, **{"last-event-id": str(middle)}) == rest
    assert parsed(lively.client.get(f"/api/experiments/{done}/events?after={middle}").text) == rest
    over = lively.client.get(f"/api/experiments/{done}/events", headers={"last-event-id": str(story[-1]["id"])})
    assert (over.status_code, over.content) == (204, b"")


def test_a_stream_can_be_asked_for_what_there_is(bare: Server) -> None:
    id = bare.submit()
    found = parsed(bare.client.get(f"/api/experiments/{id}/events", params={"follow": "false"}).text)
    assert found[0]["data"] == {"state": "queued", "run": 1}


@pytest.mark.parametrize("number", ["x", "-1", "1.5", "9" * 40])
def test_a_wrong_number_is_refused(bare: Server, number: str) -> None:
    id = bare.submit()
    response = bare.client.get(f"/api/experiments/{id}/events", headers={"last-event-id": number})
    assert response.status_code == 422
    assert response.json()["errors"][0]["path"] == "Last-Event-ID"


def test_a_hundred_watchers_miss_nothing_also_when_they_reconnect(lively: Server) -> None:
    """All see the same story, half of them through a connection that breaks in the middle.

    Only reports of progress may be in the story of one and not in that of another: they are thinned out at the end.
    """
    kinds: dict[int, str] = {}

    async def follow(client: httpx.AsyncClient, id: str, breaks: bool) -> list[int]:
        seen: list[int] = []
        broken = not breaks
        while True:
            headers = {"last-event-id": str(seen[-1])} if seen else {}
            async with client.stream("GET", f"/api/experiments/{id}/events", headers=headers) as response:
                if response.status_code == 204:
                    return seen
                async for line in response.aiter_lines():
                    if line.startswith("id: "):
                        seen.append(int(line[4:]))
                    elif line.startswith("event: "):
                        assert kinds.setdefault(seen[-1], line[7:]) == line[7:]
                        if not broken and len(seen) == 10:
                            broken = True
                            break
                else:
                    return seen

    async def watch() -> tuple[str, list[list[int]]]:
        limits = httpx.Limits(max_connections=None)
        async with httpx.AsyncClient(base_url=lively.url, timeout=240, limits=limits) as client:
            id = lively.submit(name="watched")
            stories = await asyncio.gather(*(follow(client, id, number % 2 == 1) for number in range(WATCHERS)))
            return id, stories

    id, stories = asyncio.run(watch())
    assert lively.wait(id)["state"] == "done"
    lasting = {event["id"]: event["kind"] for event in events(lively, id)}
    assert lasting.items() <= kinds.items()
    for story in stories:
        assert story == sorted(set(story))
        assert lasting.keys() <= set(story)
        assert {kinds[seen] for seen in set(story) - lasting.keys()} <= {"progress"}


def test_a_watcher_does_not_hinder_a_shutdown(tmp_path_factory: pytest.TempPathFactory) -> None:
    from tests.app.servers import serving

    async def lines(client: httpx.AsyncClient, id: str) -> AsyncIterator[str]:
        async with client.stream("GET", f"/api/experiments/{id}/events") as response:
            async for line in response.aiter_lines():
                yield line

    with serving(tmp_path_factory.mktemp("watched") / "home") as server:
        id = server.submit()

        async def leave() -> int:
            async with httpx.AsyncClient(base_url=server.url, timeout=60) as client:
                stream = lines(client, id)
                while "queued" not in await anext(stream):
                    pass
                ended = asyncio.create_task(asyncio.to_thread(server.stop))
                async for _ in stream:
                    pass
                return await ended

        assert asyncio.run(leave()) == 0
