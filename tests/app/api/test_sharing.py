"""Read-only links: what a token opens, and that it opens nothing else."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from tests.app.servers import TINY, Server, serving

KEY = "correct-horse-battery-staple"
TOKEN = "X-Share-Token"
READS = ("", "/contents", "/minima", "/surface", "/profile", "/figure", "/files", "/files/landscape.h5", "/events")


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with a key, which lets pages of one site embed shared views."""
    environment = {"VALLEY_API_KEY": KEY, "VALLEY_EMBED": "https://lab.example.org, http://*.example.net:81"}
    with serving(tmp_path_factory.mktemp("sharing") / "home", environment=environment) as server:
        server.client.headers["X-API-Key"] = KEY
        yield server


@pytest.fixture(scope="module")
def charted(guarded: Server) -> str:
    return guarded.charted()


@pytest.fixture(scope="module")
def visitor(guarded: Server) -> Iterator[httpx.Client]:
    """Somebody without the key."""
    with httpx.Client(base_url=guarded.url, timeout=60) as client:
        yield client


def shared(server: Server, id: str, **body: object) -> dict[str, str]:
    answer = server.client.post(f"/api/experiments/{id}/share", json=body)
    assert answer.status_code == 201, answer.text
    found: dict[str, str] = answer.json()
    return found


def refusal(answer: httpx.Response) -> tuple[int, str]:
    assert answer.headers["content-type"] == "application/problem+json", answer.text
    return answer.status_code, answer.json()["code"]


def test_a_token_reads_its_experiment_without_the_key(guarded: Server, charted: str, visitor: httpx.Client) -> None:
    link = shared(guarded, charted, days=7)
    headers = {TOKEN: link["token"]}
    assert visitor.get(f"/api/experiments/{charted}").status_code == 401
    for path in READS:
        assert visitor.get(f"/api/experiments/{charted}{path}", headers=headers).status_code == 200, path
    opened = visitor.get("/api/shared", headers=headers).json()
    assert opened == {"experiment": charted, "expires": link["expires"]}
    assert visitor.get(link["path"]).headers["content-type"].startswith("text/html")


def test_a_token_opens_no_other_route(guarded: Server, charted: str, visitor: httpx.Client) -> None:
    """Every route of the OpenAPI document, for this experiment, for another one and for the gallery."""
    other = guarded.still()
    headers = {TOKEN: shared(guarded, charted)["token"]}
    document = guarded.client.get("/api/openapi.json").json()
    passed = set()
    for template, operations in document["paths"].items():
        for id in (charted, other, "gallery-demo"):
            path = template.replace("{id}", id).replace("{name}", "landscape.h5").replace("{share}", id)
            for method in operations:
                answer = visitor.request(method.upper(), path, headers=headers, json=TINY if method == "post" else None)
                if path.startswith(("/api", "/metrics")) and answer.status_code != 403:
                    passed.add((method, template, id))
                else:
                    assert answer.status_code == 403 or not path.startswith(("/api", "/metrics")), (method, path)
    assert {id for _, template, id in passed if "{id}" in template} == {charted}
    assert {method for method, _, _ in passed} == {"get"}
    own = {template.removeprefix("/api/experiments/{id}") for _, template, _ in passed if "{id}" in template}
    assert own >= {path for path in READS if "landscape" not in path} - {"/files/landscape.h5"}
    assert not any("share" in path for path in own)
    assert {template for _, template, _ in passed if "{id}" not in template} == {"/api/shared"}
    assert guarded.client.get(f"/api/experiments/{charted}").status_code == 200, "it is still there"


def test_a_token_is_no_better_with_a_key_beside_it(guarded: Server, charted: str) -> None:
    headers = {TOKEN: shared(guarded, charted)["token"]}
    assert refusal(guarded.client.get("/api/experiments", headers=headers)) == (403, "share-only")
    assert refusal(guarded.client.post(f"/api/experiments/{charted}/cancel", headers=headers)) == (403, "share-only")


def test_a_changed_token_opens_nothing(guarded: Server, charted: str, visitor: httpx.Client) -> None:
    one, two = (shared(guarded, charted)["token"] for _ in range(2))
    id, signature = one.split(".")
    wrong = [
        f"{id}.{two.split('.')[1]}",
        f"{id}.{'A' * 43}",
        f"{'0' * 16}.{signature}",
        f"{id}.{signature[::-1]}",
        one + "x",
        one[:-1],
        signature,
        "",
        "x" * 5000,
    ]
    for token in wrong:
        answer = visitor.get(f"/api/experiments/{charted}", headers={TOKEN: token})
        assert refusal(answer) == (401, "bad-token"), token


def test_an_expired_link_says_so(guarded: Server, charted: str, visitor: httpx.Client) -> None:
    link = shared(guarded, charted, days=1e-9)
    answer = visitor.get(f"/api/experiments/{charted}", headers={TOKEN: link["token"]})
    assert refusal(answer) == (401, "bad-token")
    assert "expired on" in answer.json()["detail"]


def test_links_are_revoked_one_by_one_or_together(guarded: Server, visitor: httpx.Client) -> None:
    id = guarded.still()
    links = [shared(guarded, id) for _ in range(3)]
    path = f"/api/experiments/{id}/share"
    listed = guarded.client.get(path).json()["items"]
    assert {link["token"] for link in listed} == {link["token"] for link in links}

    def works() -> list[bool]:
        return [visitor.get("/api/shared", headers={TOKEN: link["token"]}).status_code == 200 for link in links]

    assert guarded.client.delete(f"{path}/{links[1]['id']}").status_code == 204
    assert works() == [True, False, True]
    assert refusal(guarded.client.delete(f"{path}/{links[1]['id']}")) == (404, "unknown")
    assert refusal(guarded.client.delete(f"{path}/no")) == (404, "unknown")
    assert guarded.client.delete(path).status_code == 204
    assert works() == [False, False, False]


def test_a_link_ends_with_its_experiment(guarded: Server, visitor: httpx.Client) -> None:
    id = guarded.still()
    headers = {TOKEN: shared(guarded, id)["token"]}
    assert guarded.client.delete(f"/api/experiments/{id}").status_code == 204
    assert visitor.get(f"/api/experiments/{id}", headers=headers).status_code == 404, "in the trash"
    assert guarded.client.delete(f"/api/experiments/{id}?permanent=true").status_code == 204
    assert refusal(visitor.get(f"/api/experiments/{id}", headers=headers)) == (401, "bad-token")


def test_a_token_is_not_in_the_log(guarded: Server, charted: str, visitor: httpx.Client) -> None:
    link = shared(guarded, charted)
    visitor.get(link["path"])
    visitor.get(link["path"] + "/more")
    visitor.get("/api/shared", headers={TOKEN: link["token"]})
    assert "/shared/..." in guarded.log
    assert link["token"] not in guarded.log
    assert link["token"].split(".")[1] not in guarded.log


def test_only_shared_views_can_be_embedded_and_only_where_the_operator_allows_it(
    guarded: Server, bare: Server, charted: str
) -> None:
    link = shared(guarded, charted)
    assert link["embed"] == ["https://lab.example.org", "http://*.example.net:81"]
    embedded = guarded.client.get(link["path"]).headers
    policy = embedded["content-security-policy"]
    assert policy.endswith("frame-ancestors https://lab.example.org http://*.example.net:81")
    assert "script-src 'self'" in policy
    assert "x-frame-options" not in embedded
    elsewhere = ("/", f"/experiments/{charted}", "/shared", "/api/shared", "/help")
    for headers in [guarded.client.get(path).headers for path in elsewhere] + [bare.client.get("/shared/x").headers]:
        assert headers["content-security-policy"].endswith("frame-ancestors 'none'")
        assert headers["x-frame-options"] == "DENY"


@pytest.mark.parametrize("days", [0, -1, 4000, "soon"])
def test_a_strange_period_is_refused(guarded: Server, charted: str, days: object) -> None:
    answer = guarded.client.post(f"/api/experiments/{charted}/share", json={"days": days})
    assert answer.json()["errors"][0]["path"] == "days"
    assert answer.status_code == 422
