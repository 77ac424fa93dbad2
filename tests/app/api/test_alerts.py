"""The example for Prometheus: its alerts ask for metrics and labels that the service really has."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from tests.app.servers import Server, serving
from tests.waiting import until
from valleyscope.app.jobs.queue import GPU, JobQueue
from valleyscope.app.settings import Settings
from valleyscope.app.storage.database import Database

HOUSE = Path(__file__).parents[3]
RULES: list[dict[str, Any]] = [
    rule
    for group in yaml.safe_load((HOUSE / "deploy" / "prometheus" / "alerts.yml").read_text())["groups"]
    for rule in group["rules"]
]
OWN = {"up": {"job", "instance"}}  # made by Prometheus itself
SCRAPED = {"job", "instance"}  # added to every metric when it is scraped
_SELECTOR = re.compile(r"\b(up|valley_\w+|process_\w+)(?:\{([^}]*)\})?")


@pytest.fixture(scope="module")
def exported(lively: Server) -> dict[str, set[str]]:
    """The labels of every metric that a server with a worker exports."""
    until(lambda: lively.client.get("/api/workers").json()["items"], complaint=lambda: lively.log)
    families = list(text_string_to_metric_families(lively.client.get("/metrics").text))
    labels: dict[str, set[str]] = {}
    for family in families:
        for suffix in ("", "_total", "_count", "_sum", "_bucket"):
            labels.setdefault(f"{family.name}{suffix}", set())
        for sample in family.samples:
            labels.setdefault(sample.name, set()).update(sample.labels)
    return labels


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
def test_an_alert_asks_for_what_is_exported(rule: dict[str, Any], exported: dict[str, set[str]]) -> None:
    known = exported | OWN
    found = _SELECTOR.findall(rule["expr"])
    assert found
    for metric, selector in found:
        assert metric in known, f"{metric} is not exported"
        asked = set(re.findall(r"(\w+)\s*(?:=~|!~|!=|=)", selector))
        assert asked <= known[metric] | SCRAPED, f"{metric} has {sorted(known[metric])}, the rule asks for {asked}"


def test_every_alert_leads_to_an_entry_of_the_manual() -> None:
    text = (HOUSE / "docs" / "operations.md").read_text(encoding="utf-8")
    titles = re.findall(r"(?m)^#+ (.+)$", text)
    anchors = {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}
    for rule in RULES:
        file, _, anchor = rule["annotations"]["runbook"].partition("#")
        assert file == "docs/operations.md"
        assert anchor in anchors, anchor
        assert rule["labels"]["severity"] in ("page", "ticket")


def test_the_manual_lists_every_setting_with_its_default() -> None:
    text = (HOUSE / "docs" / "operations.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"(?m)^\| `(VALLEY_\w+)` \|([^|]*)\|", text))
    names = {f"VALLEY_{name.upper()}": field for name, field in Settings.model_fields.items()}
    assert rows.keys() == names.keys()
    for name, field in names.items():
        if field.default_factory is None and field.default not in (None, ()):
            shown = rows[name].strip().strip("`").replace(" ", "")
            assert shown == str(field.default), f"{name}: the manual says {shown}, the program {field.default}"


def test_the_scrape_sends_the_key_from_a_file() -> None:
    text = (HOUSE / "deploy" / "prometheus" / "prometheus.yml").read_text()
    (job,) = yaml.safe_load(text)["scrape_configs"]
    assert job["metrics_path"] == "/metrics"
    assert list(job["http_headers"]["X-API-Key"]) == ["files"]
    assert job["static_configs"] == [{"targets": ["api:8360"]}]


def test_the_queue_is_counted_to_its_end(tmp_path: Path) -> None:
    with serving(tmp_path / "home") as server:
        database = Database(f"sqlite:///{server.home / 'valley.db'}")
        jobs = JobQueue(database, "test", GPU, print)
        jobs.connect()
        with database.write() as connection:
            for number in range(1234):
                jobs.enqueue_task(connection, "0" * 16, 1, f"train:{number}", 1)
        jobs.stop()
        database.close()
        assert "valley_queue_tasks 1234.0" in server.client.get("/metrics").text.splitlines()
