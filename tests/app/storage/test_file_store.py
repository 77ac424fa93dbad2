"""The store that hosts share, with a folder as its simplest form: what is copied, and how errors are reported."""

from __future__ import annotations

import subprocess
import sys
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from tests.app.runs import SMALL
from valleyscope.app.commands.doctor import examine
from valleyscope.app.experiments.plan import plan
from valleyscope.app.experiments.spec import Spec
from valleyscope.app.experiments.task_files import is_input, is_output, is_written_by_orchestrator
from valleyscope.app.settings import BadSettings, Settings
from valleyscope.app.storage.cleanup import remove_unused_copies
from valleyscope.app.storage.database import Database
from valleyscope.app.storage.file_store import ObjectStoreReplica, open_store
from valleyscope.app.storage.home import Home
from valleyscope.app.storage.ids import new_id
from valleyscope.app.storage.object_store import ObjectStore, StoreUnavailable, is_plain
from valleyscope.app.storage.tables import experiments

ID = "1a1e549f4b1bbf71"  # fixed: xdist wants the same names of tests in every process


class Host:
    """One host with its home, on a store that other hosts share."""

    def __init__(self, home: Path, store: Path) -> None:
        self.storage = Home(home)
        self.store = ObjectStoreReplica(ObjectStore(f"file://{store}"), self.storage)
        self.folder = self.storage.experiment(ID)

    def write(self, name: str, content: bytes) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_name(f".{path.name}.partial")
        partial.write_bytes(content)
        partial.replace(path)

    def read(self, name: str) -> bytes:
        return (self.folder / name).read_bytes()

    def push(self) -> None:
        self.store.push(ID, _all)

    def pull(self) -> None:
        self.store.pull(ID, _all)


def _all(_name: str) -> bool:
    return True


@pytest.fixture
def store_folder(tmp_path: Path) -> Path:
    folder = tmp_path / "store"
    folder.mkdir()
    return folder


@pytest.fixture
def one(tmp_path: Path, store_folder: Path) -> Host:
    return Host(tmp_path / "one", store_folder)


@pytest.fixture
def two(tmp_path: Path, store_folder: Path) -> Host:
    return Host(tmp_path / "two", store_folder)


def stored(store_folder: Path) -> dict[str, tuple[int, int]]:
    """Every file of the store and which one it is: two that are written at once may have the same time."""
    found = {str(path.relative_to(store_folder)): path.stat() for path in store_folder.rglob("*") if path.is_file()}
    return {name: (state.st_ino, state.st_mtime_ns) for name, state in found.items()}


def test_what_one_host_pushes_another_pulls(one: Host, two: Host) -> None:
    one.write("sgd.safetensors", b"weights")
    one.write("work/sgd/training-state.pt", b"state")
    one.push()
    two.pull()
    assert (two.read("sgd.safetensors"), two.read("work/sgd/training-state.pt")) == (b"weights", b"state")
    assert two.store.file_sizes(ID) == {"sgd.safetensors": 7, "work/sgd/training-state.pt": 5}


def test_only_changed_files_are_copied(one: Host, two: Host, store_folder: Path) -> None:
    one.write("a", b"1")
    one.write("b", b"1")
    one.push()
    before = stored(store_folder)
    one.write("b", b"2")
    one.push()
    after = stored(store_folder)
    assert [name for name in after if after[name] != before[name]] == [f"experiments/{ID}/b"]
    two.pull()
    unchanged = (two.folder / "a").stat().st_mtime_ns
    two.pull()
    assert (two.folder / "a").stat().st_mtime_ns == unchanged
    # The sync index outlives the process.
    again = Host(two.storage.path, store_folder)
    again.push()
    assert stored(store_folder) == after


def test_a_newer_local_file_is_not_overwritten_by_the_object_it_was_made_from(one: Host, two: Host) -> None:
    one.write("landscape.h5", b"first")
    one.push()
    one.write("landscape.h5", b"second")
    one.pull()
    one.store.fetch(ID, "landscape.h5")
    assert one.read("landscape.h5") == b"second"
    one.push()
    two.pull()
    assert two.read("landscape.h5") == b"second"


def test_a_newer_object_of_another_host_wins(one: Host, two: Host) -> None:
    one.write("state", b"one")
    one.push()
    two.pull()
    two.write("state", b"two, which went on")
    two.push()
    one.write("state", b"one, which was cut off")
    one.pull()
    assert one.read("state") == b"two, which went on"


def test_a_file_removed_locally_is_removed_from_the_store(one: Host, two: Host, store_folder: Path) -> None:
    one.write("work/sgd/training-state.pt", b"state")
    one.write("sgd.safetensors", b"weights")
    one.push()
    (one.folder / "work/sgd/training-state.pt").unlink()
    one.store.push(ID, lambda name: name == "sgd.safetensors")
    assert len(stored(store_folder)) == 2, "the filter excludes that one"
    one.push()
    assert [*stored(store_folder)] == [f"experiments/{ID}/sgd.safetensors"]
    two.push()
    assert [*stored(store_folder)] == [f"experiments/{ID}/sgd.safetensors"], "a host without a copy removes nothing"


def test_hidden_and_unknown_files_are_not_copied(one: Host, two: Host, store_folder: Path, tmp_path: Path) -> None:
    one.write("landscape.h5", b"whole")
    for name in (".landscape.h5.0123.partial", "two words", "-dash", "work/a/b/c"):
        path = one.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"part")
    (one.folder / "link").symlink_to(tmp_path / "outside")
    one.push()
    assert [*stored(store_folder)] == [f"experiments/{ID}/landscape.h5"]
    remote = store_folder / "experiments" / ID
    (remote / ".hidden").write_bytes(b"x")
    (remote / "odd name").write_bytes(b"x")
    (remote / "link").symlink_to(tmp_path)
    two.pull()
    assert sorted(path.name for path in two.folder.iterdir() if not path.name.startswith(".store")) == ["landscape.h5"]


@pytest.mark.parametrize("name", ["../x", "/etc/passwd", "a/../../b", "", ".", "a//b", "a/", "a\\b", ".hidden", "a\n"])
def test_names_outside_the_folder_are_refused(one: Host, name: str) -> None:
    assert not is_plain(name)
    with pytest.raises(ValueError, match="not a valid file name"):
        one.store.fetch(ID, name)


@pytest.mark.parametrize("identifier", ["..", "x", f"{ID}/..", "", f"{ID}0"])
def test_only_valid_ids_name_folders(one: Host, identifier: str) -> None:
    with pytest.raises(ValueError, match="not a valid id"):
        one.store.remove(identifier)


def test_a_removed_experiment_leaves_nothing(one: Host, store_folder: Path) -> None:
    one.write("a", b"1")
    one.push()
    (store_folder / "experiments" / ID / ".unknown").write_bytes(b"x")
    one.store.remove(ID)
    one.store.remove(ID)
    assert stored(store_folder) == {}


def test_uploads_are_copied(one: Host, two: Host, store_folder: Path) -> None:
    path = one.storage.checkpoint(ID)
    path.parent.mkdir(parents=True)
    path.write_bytes(b"weights")
    one.store.push_checkpoint(ID)
    two.store.fetch_checkpoint(ID)
    assert two.storage.checkpoint(ID).read_bytes() == b"weights"
    one.store.remove_checkpoint(ID)
    one.store.remove_checkpoint(ID)
    assert stored(store_folder) == {}
    two.storage.checkpoint(ID).unlink()
    two.store.fetch_checkpoint(ID)
    assert not two.storage.checkpoint(ID).exists()


def test_an_unmounted_store_is_a_problem_and_not_created(one: Host, store_folder: Path) -> None:
    one.write("a", b"1")
    one.push()
    store_folder.rename(store_folder.with_name("unplugged"))
    for action in (one.pull, one.push, one.store.probe, lambda: one.store.remove(ID), lambda: one.store.fetch(ID, "a")):
        one.write("a", b"2")
        with pytest.raises(StoreUnavailable, match="mount or create its folder"):
            action()
    assert "mount" in (one.store.problem() or "")
    assert not store_folder.exists()
    store_folder.with_name("unplugged").rename(store_folder)
    one.push()
    assert (store_folder / "experiments" / ID / "a").read_bytes() == b"2"


def test_without_a_store_nothing_is_copied(tmp_path: Path) -> None:
    store = open_store(None, Home(tmp_path))
    store.push(ID, _all)
    store.pull(ID, _all)
    store.remove(ID)
    store.probe()
    assert (store.remote, store.file_sizes(ID), store.problem(), list(tmp_path.iterdir())) == (False, {}, None, [])


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("memory://x", "ends with the process"),
        ("/mnt/x", "must be the URL"),
        ("file://mnt/x", "absolute path"),
        ("s3://", "must name a bucket"),
        ("s3://key:sesame@bucket/x", "no credentials"),
        ("s3://bucket/x?secret=sesame", "no credentials"),
        ("s3://bucket/a/../b", "no empty part"),
        ("zip::s3://bucket/a", "must be the URL"),
    ],
)
def test_an_invalid_store_url_is_refused_without_repeating_it(tmp_path: Path, url: str, words: str) -> None:
    with pytest.raises(BadSettings, match=words) as refused:
        Settings.load(home=tmp_path, store=url)
    assert "VALLEY_STORE" in str(refused.value)
    assert "sesame" not in str(refused.value)


def test_a_missing_library_is_named(tmp_path: Path) -> None:
    script = (
        "import sys; sys.modules['s3fs'] = None\n"
        "from valleyscope.app.storage.home import Home; from valleyscope.app.storage.file_store import open_store\n"
        f"open_store('s3://bucket/x', Home({str(tmp_path)!r}))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert "pip install 'valleyscope[s3]'" in done.stderr.splitlines()[-1]


def test_the_doctor_reports_problems_of_the_store(tmp_path: Path) -> None:
    said = StringIO()
    settings = Settings.load(home=tmp_path, store=f"file://{tmp_path}/absent/")
    assert examine(settings, Console(file=said, width=300)) == 1
    assert f"the store file://{tmp_path}/absent does not exist: mount or create its folder" in said.getvalue()
    (tmp_path / "absent").mkdir()
    assert examine(settings, Console(file=StringIO())) == 0
    assert not [path for path in (tmp_path / "absent").rglob("*") if path.is_file()], "the probe is removed"


def test_every_file_of_a_run_has_one_writer_that_its_readers_wait_for(finished: Path) -> None:
    spec = Spec.model_validate(SMALL)
    tasks = {task.id: task for task in plan(spec)}
    names = [path.relative_to(finished).as_posix() for path in finished.rglob("*") if path.is_file()]
    names.remove("work/lock")
    assert len(names) > 20
    for name in names:
        writers = [task.id for task in tasks.values() if is_output(task, name)]
        assert len(writers) + is_written_by_orchestrator(name) == 1, (name, writers)
        for task in tasks.values():
            if is_input(spec, task, name) and not is_output(task, name):
                before = {*task.needs, *task.after}
                for need in list(before):
                    before |= {*tasks[need].needs, *tasks[need].after}
                assert set(writers) <= before or task.kind in ("curve", "line", "sharpness"), (task.id, name)


def test_a_workers_copies_of_ended_experiments_are_removed_and_the_apis_stay(
    database: Database, tmp_path: Path
) -> None:
    storage = Home(tmp_path / "home")
    ended, recent, running, gone, apis = (new_id() for _ in range(5))
    times = {ended: ("done", 1.0), recent: ("done", 1e12), running: ("running", None), apis: ("done", 1.0)}
    with database.write() as connection:
        for id, (state, finished) in times.items():
            values = {"id": id, "name": "x", "state": state, "stage": state, "spec": "{}", "digest": "", "priority": 1}
            more = {"run": 1, "created": 0.0, "progress": 0.0, "cancel": False, "deleted": False, "finished": finished}
            connection.execute(experiments.insert().values(values | more))
    for id in (ended, recent, running, gone, apis):
        storage.experiment(id).mkdir(parents=True)
    (storage.experiment(apis) / "spec.json").write_text("{}")
    assert remove_unused_copies(database, storage) == sorted([ended, gone])
    assert storage.stored_experiments() == {recent, running, apis}
