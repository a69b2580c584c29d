"""The same release on a Ray cluster: equal bits, one charge, whatever breaks on the way.

Every test runs against a real cluster of worker processes on this machine.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from edgeveil.errors import EdgeveilError, InputError, ParameterError
from edgeveil.graph.datasets import social_network
from edgeveil.graph.saved import save_graph
from edgeveil.jobs import Local, Ray, embed, keys, ray_cluster, release, release_to
from edgeveil.jobs.ray_cluster import GraphFolder, _run_part
from edgeveil.jobs.tasks import Part, Task
from edgeveil.ledger import Ledger
from edgeveil.mechanisms import DPInstantEmbedding, DPPushFlowCap, EdgeFlipping
from edgeveil.privacy.noise import NoiseSource
from edgeveil.series import refresh

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")

GRAPH = social_network(1500, average_degree=20).graph
ALL = list(GRAPH.nodes)
EMBED = DPInstantEmbedding(epsilon=1.0, dimension=8, rounds=10)
SLOW = DPInstantEmbedding(epsilon=1.0, dimension=8, rounds=100)  # a second or so for all


def seeded():
    return NoiseSource.insecure(5)


@pytest.fixture
def ledger(tmp_path):
    return Ledger.create(tmp_path / "ledger", epsilon=2)


# --- Whole = sharded ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def made_here():
    """Mechanisms, sources, and what they get without a cluster."""
    results = []
    for mechanism in (EMBED, DPPushFlowCap(epsilon=1.0, rounds=20), EdgeFlipping(epsilon=4.0)):
        sources = ALL[: 40 if mechanism.name == "edge-flipping" else 600]
        here = release(GRAPH, mechanism, sources, noise=seeded(), engine=Local(threads=1))
        results.append((mechanism, sources, here.values.tobytes()))
    return results


@pytest.fixture(scope="module")
def whole():
    return embed(GRAPH, epsilon=1.0, mechanism=EMBED, noise=seeded()).values.tobytes()


@pytest.mark.parametrize("workers", [1, 2, 7])  # the cluster runs three at a time
def test_the_same_bits_for_any_number_of_workers(workers, cluster, made_here, whole, tmp_path):
    engine = Ray(workers=workers)
    for mechanism, sources, here in made_here:
        there = release(GRAPH, mechanism, sources, noise=seeded(), engine=engine)
        assert there.values.tobytes() == here
    folder = release_to(tmp_path / "out", GRAPH, EMBED, ALL, noise=seeded(), engine=engine)
    assert folder.read().values.tobytes() == whole


def test_without_a_seed_every_release_has_its_own_noise(cluster):
    first = release(GRAPH, SLOW, ALL[:20], engine=Ray())
    second = release(GRAPH, SLOW, ALL[:20], engine=Ray())
    assert first.guarantee.protects
    assert not (first.values == second.values).any()


def test_workers_share_one_read_only_graph(cluster):
    """What a worker gets are views of the object store, not copies."""

    def where(sent):
        indices = cluster_get(sent[0]).graph.indices
        return indices.flags.writeable, indices.flags.owndata

    cluster_get = cluster.get
    shared = cluster.put(Task(mechanism=SLOW, graph=GRAPH, shared=None))
    assert cluster.get(cluster.remote(where).remote([shared])) == (False, False)


def test_a_graph_in_a_shared_folder_travels_as_its_path(cluster, tmp_path, monkeypatch):
    path = save_graph(GRAPH, tmp_path / "graph")
    put = []
    put_there = cluster.put

    def noted(sent):
        put.append(sent)
        return put_there(sent)

    monkeypatch.setattr(cluster, "put", noted)
    engine = Ray(graph_path=path)
    here = release(GRAPH, EMBED, ALL[:300], noise=seeded())
    there = release(GRAPH, EMBED, ALL[:300], noise=seeded(), engine=engine)
    assert there.values.tobytes() == here.values.tobytes()
    assert [sent.graph for sent in put] == [GraphFolder(str(path.resolve()), GRAPH.fingerprint)]
    other = GRAPH.with_edge_flipped(0, 1)
    with pytest.raises(ParameterError, match="does not hold the graph"):
        release(other, EMBED, ALL[:3], engine=engine)


def test_a_folder_that_is_another_graph_on_the_worker_is_refused(tmp_path):
    path = save_graph(GRAPH, tmp_path / "graph")
    folder = GraphFolder.holding(GRAPH, path)
    # Under an unchanged graph.json, too.
    np.save(path / "indices.npy", np.concatenate([GRAPH.indices[1::-1], GRAPH.indices[2:]]))
    with pytest.raises(EdgeveilError, match="another graph"):
        folder.open()
    save_graph(GRAPH.with_edge_flipped(0, 1), path, overwrite=True)
    with pytest.raises(EdgeveilError, match="another graph"):
        folder.open()
    shutil.rmtree(path)
    with pytest.raises(EdgeveilError, match="on a worker's machine: there is no folder"):
        folder.open()


# --- Faults ---------------------------------------------------------------------------------


def processes_below(pid):
    """All processes that descend from a process."""
    parents = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(path.parent.name)] = int(path.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
    process_ids = {pid}
    while (
        more := {child for child, parent in parents.items() if parent in process_ids} - process_ids
    ):
        process_ids |= more
    return process_ids - {pid}


def named(pid):
    """The name under which a process goes; none if it is gone."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().split("\0")[0]
    except OSError:
        return ""


def kill_a_busy_worker(killed):
    """Kill the first worker that is seen at work."""
    deadline = time.monotonic() + 300
    while not killed and time.monotonic() < deadline:
        # Workers of this process's cluster that run a part right now.
        busy = [p for p in processes_below(os.getpid()) if named(p).startswith("ray::_run_part")]
        for pid in busy[:1]:
            os.kill(pid, signal.SIGKILL)
            killed.append(pid)


def test_a_killed_worker_costs_only_time(cluster, ledger, tmp_path):
    killed = []
    killer = threading.Thread(target=kill_a_busy_worker, args=(killed,))
    killer.start()
    folder = release_to(tmp_path / "out", GRAPH, SLOW, ALL, ledger=ledger, engine=Ray(workers=2))
    killer.join()
    assert killed
    folder.verify()
    assert len(folder) == len(ALL)
    assert len(ledger.charges()) == 1
    assert (
        folder.read().values.tobytes() == release(GRAPH, SLOW, ALL, ledger=ledger).values.tobytes()
    )


TWO_MACHINES = """
import pathlib
import sys

import ray
from ray.cluster_utils import Cluster
from edgeveil.graph.datasets import social_network
from edgeveil.jobs import Ray, release
from edgeveil.mechanisms import DPInstantEmbedding
from edgeveil.privacy.noise import NoiseSource

graph = social_network(1500, average_degree=20).graph
mechanism = DPInstantEmbedding(epsilon=1.0, dimension=1024, rounds=100)  # rows for the store
memory = {"object_store_memory": 100 << 20}
cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, **memory})
nodes = [cluster.add_node(num_cpus=1, **memory) for _ in range(2)]
ray.init(address=cluster.address, log_to_driver=False)
gone = []

def lose_a_machine(done, total):
    if not gone:
        gone.append(nodes[0])
        cluster.remove_node(nodes[0], allow_graceful=False)

sources = list(graph.nodes)
far = release(graph, mechanism, sources, noise=NoiseSource.insecure(5), engine=Ray(workers=6),
              progress=lose_a_machine)
near = release(graph, mechanism, sources, noise=NoiseSource.insecure(5))
same = far.values.tobytes() == near.values.tobytes()
pathlib.Path(sys.argv[1]).write_text(f"{'equal' if same else 'different'} {len(gone)}")
ray.shutdown()
cluster.shutdown()
"""


def test_a_lost_machine_with_its_object_store_costs_only_time(tmp_path):
    """Two machines (as far as Ray can tell), of which one dies with all results it holds."""
    said = tmp_path / "said"
    command = [sys.executable, "-c", TWO_MACHINES, str(said)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stderr[-2000:]
    assert said.read_text() == "equal 1"


DRIVER = """
import sys
from edgeveil.graph.datasets import social_network
from edgeveil.jobs import Ray, release_to
from edgeveil.mechanisms import DPInstantEmbedding
from edgeveil.ledger import Ledger

graph = social_network(1500, average_degree=20).graph
mechanism = DPInstantEmbedding(epsilon=1.0, dimension=8, rounds=100)
release_to(
    sys.argv[2], graph, mechanism, list(graph.nodes), ledger=Ledger.open(sys.argv[1]),
    engine=Ray(workers=1, address=sys.argv[3] if len(sys.argv) > 3 else None),
    progress=lambda done, total: print(done, flush=True),
)
"""


@pytest.mark.parametrize("victim", ["driver", "object store"])
def test_a_run_that_died_is_followed_by_one_that_goes_on(victim, ledger, tmp_path, cluster):
    out = tmp_path / "out"
    command = [sys.executable, "-c", DRIVER, ledger.location, str(out)]
    if victim == "driver":  # the other victim is a cluster of its own
        command.append(cluster.get_runtime_context().gcs_address)
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as driver:
        assert driver.stdout.readline().strip() == b"256"
        if victim == "driver":
            driver.kill()
        else:
            # The raylet holds the object store of its machine.
            for pid in processes_below(driver.pid):
                if "/raylet" in named(pid):
                    os.kill(pid, signal.SIGKILL)
        assert driver.wait(timeout=500) != 0
    assert not out.exists()
    charges = ledger.charges()
    assert not all(charge.released for charge in charges)
    shutil.copy(ledger.location, tmp_path / "copy")
    shutil.copytree(f"{ledger.location}.artifacts", tmp_path / "copy.artifacts")
    folder = release_to(out, GRAPH, SLOW, ALL, ledger=ledger).read()
    begun = sum(charge.n_rows for charge in charges)
    undisturbed = release(GRAPH, SLOW, ALL[:begun], ledger=Ledger.open(tmp_path / "copy"))
    assert folder.values[:begun].tobytes() == undisturbed.values.tobytes()
    assert ledger.charges()[: len(charges)][0].key == charges[0].key
    assert sum(charge.n_rows for charge in ledger.charges()) == len(ALL)


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 64 KiB: real, and soon full."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(place)], capture_output=True
    )
    if mounted.returncode:
        pytest.skip("mounting a small file system is not allowed here")
    yield place
    subprocess.run(["umount", str(place)], check=True)


def test_full_disk_is_an_error_and_freed_space_resumes(cluster, ledger, small_disk):
    out, engine = small_disk / "out", Ray(workers=2)
    with pytest.raises(OSError, match=r"No space left|space"):
        release_to(out, GRAPH, SLOW, ALL, ledger=ledger, engine=engine)
    assert not list(small_disk.iterdir())
    remount = ["mount", "-o", "remount,size=16m", str(small_disk)]
    subprocess.run(remount, check=True)
    folder = release_to(out, GRAPH, SLOW, ALL, ledger=ledger, engine=engine)
    folder.verify()
    assert len(ledger.charges()) == 1


def test_an_error_in_a_worker_is_the_error_one_gets(cluster, tmp_path, monkeypatch):
    path = save_graph(GRAPH, tmp_path / "graph")

    holding = GraphFolder.holding

    def replaced(graph, folder):
        held = holding(graph, folder)
        save_graph(GRAPH.with_edge_flipped(0, 1), path, overwrite=True)
        return held

    monkeypatch.setattr(GraphFolder, "holding", replaced)
    with pytest.raises(InputError, match="on a worker holds another graph than on the caller"):
        release(GRAPH, SLOW, ALL, engine=Ray(workers=1, graph_path=path))


def test_what_is_cancelled_has_ended_and_writes_nothing_more(cluster, tmp_path, monkeypatch):
    """Also where a worker does not hear the interrupt, as inside of a long compiled loop."""

    def work(folder, deaf):
        (folder / f"{os.getpid()}.started").touch()
        until = time.monotonic() + 100
        while not (folder / "go").exists() and time.monotonic() < until:
            try:
                time.sleep(0.05)
            except KeyboardInterrupt:
                if not deaf:
                    raise
        (folder / "written").touch()

    monkeypatch.setattr(ray_cluster, "_GRACE", 6.0)  # of a busy machine
    start = cluster.remote(max_retries=0)(work).remote
    parts = [start(tmp_path, deaf) for deaf in (False, True)]
    while len(started := list(tmp_path.glob("*.started"))) < 2:
        time.sleep(0.02)
    ray_cluster._end(cluster, parts)
    assert len(cluster.wait(parts, num_returns=2, timeout=0)[0]) == 2
    (tmp_path / "go").touch()
    # The deaf one was killed: nobody is left who could write.
    time.sleep(1)
    assert not (tmp_path / "written").exists()
    assert sum(named(int(file.stem)).startswith("ray::work") for file in started) == 0


def test_a_worker_with_other_code_refuses_the_part(cluster, monkeypatch):
    """It could draw other values under the same key, or less noise."""
    sent = [cluster.put(Task(mechanism=SLOW, graph=GRAPH, shared=None))]
    part, key = Part(0, (0, 1)), seeded().export_key()
    code = keys.code_of(SLOW)
    assert _run_part(sent, "one", code, part, key).rows.shape == (2, 8)
    monkeypatch.setattr(keys, "_our_code", lambda: "0" * 64)
    with pytest.raises(EdgeveilError, match="a worker runs other code"):
        _run_part(sent, "two", code, part, key)


# --- The secret -----------------------------------------------------------------------------


def test_the_secret_is_on_no_disk_and_in_no_store(cluster, ledger, tmp_path):
    secrets = []
    original = NoiseSource.export_key

    def watch(self):
        key = original(self)
        secrets.append(key.secret)
        return key

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(NoiseSource, "export_key", watch)
        release_to(tmp_path / "out", GRAPH, EMBED, ALL, ledger=ledger, engine=Ray(workers=2))
    (secret,) = set(secrets)
    session = Path(cluster._private.worker._global_node.get_session_dir_path())
    looked_at = 0
    for path in [*session.rglob("*"), *Path("/dev/shm").glob("plasma*")]:
        if path.is_file() and not path.is_socket():
            content = path.read_bytes()
            assert secret not in content, path
            assert secret.hex().encode() not in content, path
            looked_at += 1
    assert looked_at > 3
    assert secret.hex() not in repr(original(seeded()))


# --- Use ------------------------------------------------------------------------------------


def test_a_cluster_of_its_own_for_one_call(tmp_path):
    """In a process of its own, because this one is connected to the tests' cluster."""
    program = (
        "from edgeveil.graph.datasets import social_network as s\n"
        "import edgeveil as ev\n"
        "from edgeveil.privacy.noise import NoiseSource as N\n"
        "import os, ray\n"
        "g, seen = s(300).graph, []\n"
        "def look(done, total):\n"
        "    folder = ray._private.worker._global_node.get_session_dir_path()\n"
        "    place = os.path.dirname(os.path.dirname(folder))\n"
        "    seen.append((place, oct(os.stat(place).st_mode & 0o777)))\n"
        "engine = ev.jobs.Ray(workers=2)\n"
        "a = ev.embed(g, engine=engine, progress=look)\n"
        "place, mode = seen[0]\n"
        "assert mode == '0o700', mode\n"
        "assert not os.path.exists(place), place\n"
        "b = ev.embed(g)\n"
        "assert a.values.tobytes() == b.values.tobytes()\n"
        "assert not ray.is_initialized()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=500
    )
    assert done.returncode == 0, done.stderr


def test_an_address_without_a_cluster_is_a_plain_error_at_once():
    addresses = ["127.0.0.1:9", "nowhere.invalid:6379", "no port"]
    program = (
        "import sys\n"
        "from edgeveil.graph.datasets import social_network\n"
        "from edgeveil.jobs import Ray, release\n"
        "from edgeveil.errors import EdgeveilError\n"
        "from edgeveil.mechanisms import TwoHop\n"
        "graph = social_network(150).graph\n"
        "for address in sys.argv[1:]:\n"
        "    try:\n"
        "        release(graph, TwoHop(epsilon=1), [1], engine=Ray(address=address))\n"
        "    except EdgeveilError as error:\n"
        "        print(error)\n"
    )
    command = [sys.executable, "-c", program, *addresses]
    done = subprocess.run(command, capture_output=True, text=True, timeout=500)
    for address, line in zip(addresses, done.stdout.splitlines(), strict=True):
        assert f"no Ray cluster answers at {address!r}" in line, done.stderr


@pytest.mark.parametrize("workers", [0, -1, 1.5])
def test_workers_must_make_sense(workers):
    with pytest.raises(ParameterError, match="workers"):
        Ray(workers=workers)


def test_a_series_is_refreshed_on_the_cluster(cluster, tmp_path):
    """Windows are drawn from the batches' secrets, so threads would have drawn the same."""
    ledger = Ledger.create(tmp_path / "f.ledger", epsilon=1)
    options = {"ledger": ledger, "epsilon": 1.0, "label": "friends", "engine": Ray(workers=2)}
    first = refresh(social_network(300, average_degree=20).graph, date="2026-01-01", **options)
    assert (first.n_lists, first.n_newcomers) == (300, 300)
    assert first.n_windows > 100
    again = refresh(social_network(310, average_degree=20).graph, date="2026-01-08", **options)
    assert (again.n_lists, again.n_newcomers) == (310, 10)
    suggestions = again.suggestions(k=5)
    assert (suggestions.lists.chance < 0.5).any(), "something stands out"
    assert {account.charged for account in ledger.accounts()} == {1.0}


class Interrupted:
    """An engine that is stopped when everything was charged and recorded, and nothing drawn."""

    def run(self, task, parts):
        assert list(parts)
        raise KeyboardInterrupt


def test_killed_worker_during_refresh_costs_only_time(cluster, tmp_path):
    """Its windows are those that threads draw from the same secrets."""
    graph, killed = social_network(300, average_degree=20).graph, []
    options = {"epsilon": 1.0, "label": "friends", "date": "2026-01-01"}
    ledger = Ledger.create(tmp_path / "f.ledger", epsilon=1)
    with pytest.raises(KeyboardInterrupt):
        refresh(graph, ledger=ledger, engine=Interrupted(), **options)
    (tmp_path / "copy").mkdir()
    for path in tmp_path.glob("f.ledger*"):
        (shutil.copytree if path.is_dir() else shutil.copy)(path, tmp_path / "copy" / path.name)
    killer = threading.Thread(target=kill_a_busy_worker, args=(killed,))
    killer.start()
    far = refresh(graph, ledger=ledger, engine=Ray(workers=2), **options)
    killer.join()
    assert killed
    near = refresh(graph, ledger=tmp_path / "copy" / "f.ledger", **options)
    for name in ("nodes", "starts", "scores"):
        here, there = (getattr(refreshed.suggestions(k=5).lists, name) for refreshed in (near, far))
        assert here.tobytes() == there.tobytes()
    assert far.n_windows == near.n_windows > 100
    assert {account.charged for account in ledger.accounts()} == {1.0}
    assert all(charge.released for charge in ledger.charges())
