"""Releases to a folder: the same values in any number of threads, stopped and resumed or not."""

from __future__ import annotations

import shutil
import stat

import numpy as np
import pytest

from edgeveil.errors import (
    BudgetError,
    InputError,
    LedgerError,
    ParameterError,
    UnknownNodeError,
)
from edgeveil.graph.datasets import social_network
from edgeveil.jobs import Local, drawing, prepare, release, release_to
from edgeveil.jobs.tasks import Part, Task
from edgeveil.ledger import Ledger
from edgeveil.mechanisms import (
    DPInstantEmbedding,
    DPPushFlowCap,
    OwnListEmbedding,
    Suggest,
    TwoHop,
)
from edgeveil.mechanisms import run as runner
from edgeveil.mechanisms.run import shared_part
from edgeveil.privacy.noise import NoiseSource
from edgeveil.results.release import Release
from edgeveil.results.release_folder import ReleaseFolder

GRAPH = social_network(900, average_degree=12).graph
EMBED = DPInstantEmbedding(epsilon=1.0, dimension=8, rounds=10)
ALL = list(GRAPH.nodes)


@pytest.fixture
def ledger(tmp_path):
    return Ledger.create(tmp_path / "ledger", epsilon=2)


def seeded():
    return NoiseSource.insecure(11)


def stop_after(rows):
    """Ctrl-C as soon as so many rows are done."""

    def progress(done, total):
        if done >= rows:
            raise KeyboardInterrupt

    return progress


MECHANISMS = [
    EMBED,
    OwnListEmbedding(dimension=8),
    DPPushFlowCap(epsilon=1.0, rounds=None),
    TwoHop(epsilon=1.0),
]


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda m: m.name)
def test_the_same_bits_for_any_number_of_threads_and_in_a_folder(mechanism, tmp_path):
    sources = ALL[3:600:2]
    single = release(GRAPH, mechanism, sources, noise=seeded(), engine=Local(threads=1))
    for threads in (2, 4, 7):
        engine = Local(threads=threads)
        many = release(GRAPH, mechanism, sources, noise=seeded(), engine=engine)
        assert many.values.tobytes() == single.values.tobytes()
        if single.uncertainty is not None:
            assert many.uncertainty.tobytes() == single.uncertainty.tobytes()
    folder = release_to(tmp_path / "out", GRAPH, mechanism, sources, noise=seeded())
    whole = folder.read()
    assert whole.values.tobytes() == single.values.tobytes()
    assert whole.sources == single.sources
    assert (
        (whole.uncertainty is None)
        == (single.uncertainty is None)
        == (mechanism.output != "scores")
    )
    if single.uncertainty is not None:
        assert whole.uncertainty.tobytes() == single.uncertainty.tobytes()
    assert folder.guarantee == single.guarantee
    assert len(folder.parts) == 2
    assert len(folder) == len(sources)
    np.testing.assert_array_equal(folder.only(sources[270]).values[0], single.row(sources[270]))
    with pytest.raises(UnknownNodeError):
        folder.only(ALL[4])


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda m: m.name)
def test_the_same_bits_whatever_is_computed_at_once(mechanism, monkeypatch):
    noise = seeded()
    shared = shared_part(mechanism, GRAPH, noise.derive("shared"))
    blocks = []
    task = Task(mechanism=mechanism, graph=GRAPH, shared=shared)
    monkeypatch.setattr(runner, "_LANES", 1)
    for at_once in (1, 3, 8, 256):
        monkeypatch.setattr(runner, "_GROUP_BYTES", at_once * 8 * GRAPH.n_nodes)
        assert runner.rows_at_once(GRAPH.n_nodes) == at_once
        done = task(Part(0, tuple(range(5, 22))), noise.derive("rows"), lambda: None)
        width = b"" if done.uncertainty is None else done.uncertainty.tobytes()
        blocks.append((done.rows.tobytes(), width))
    assert blocks == [blocks[0]] * 4


def test_the_same_call_again_costs_nothing_in_whichever_form(ledger, tmp_path):
    first = release_to(tmp_path / "out", GRAPH, EMBED, ALL, ledger=ledger)
    again = release_to(tmp_path / "out", GRAPH, EMBED, ALL, ledger=ledger)
    assert again == first
    assert first.sources == tuple(ALL)
    whole = release(GRAPH, EMBED, ALL, ledger=ledger)
    assert whole.values.tobytes() == first.read().values.tobytes()
    elsewhere = release_to(tmp_path / "elsewhere", GRAPH, EMBED, ALL, ledger=ledger)
    assert elsewhere.read().values.tobytes() == whole.values.tobytes()
    assert len(ledger.charges()) == 1
    assert first.provenance.ledger


def test_a_release_in_memory_can_become_a_folder(ledger, tmp_path):
    released = release(GRAPH, EMBED, ALL[:5], ledger=ledger)
    folder = release_to(tmp_path / "out", GRAPH, EMBED, ALL[:5], ledger=ledger)
    assert folder.read().values.tobytes() == released.values.tobytes()
    assert ReleaseFolder.open(tmp_path / "out") == folder
    assert len(ledger.charges()) == 1


def test_interrupted_it_goes_on_with_the_same_noise_for_nothing(ledger, tmp_path, monkeypatch):
    monkeypatch.setattr(drawing, "_BATCH_ROWS", 256)
    out = tmp_path / "out"
    with pytest.raises(KeyboardInterrupt):
        release_to(
            out, GRAPH, EMBED, ALL, ledger=ledger, engine=Local(threads=1), progress=stop_after(512)
        )
    assert not list(tmp_path.glob("out*")), "a folder appears when it is whole"
    kept = {path: path.stat().st_mtime_ns for path in (tmp_path / "ledger.artifacts").iterdir()}
    assert len(kept) == 2, "what is shared, and the first batch"
    # The same secrets, used by somebody who was not interrupted.
    shutil.copy(tmp_path / "ledger", tmp_path / "copy")
    shutil.copytree(tmp_path / "ledger.artifacts", tmp_path / "copy.artifacts")
    undisturbed = release(GRAPH, EMBED, ALL[:512], ledger=Ledger.open(tmp_path / "copy"))
    folder = release_to(out, GRAPH, EMBED, ALL, ledger=ledger).read()
    assert folder.values[:512].tobytes() == undisturbed.values.tobytes()
    assert {path: path.stat().st_mtime_ns for path in kept} == kept
    assert [charge.n_rows for charge in ledger.charges()] == [256, 256, 256, 132]


def test_another_release_in_the_folder_is_refused(ledger, tmp_path):
    out = tmp_path / "out"
    release_to(out, GRAPH, EMBED, ALL[:5], ledger=ledger)
    release(GRAPH, EMBED, ALL[:9], ledger=ledger)
    before = ledger.charges()
    for sources in (ALL[:4], ALL[:6], ALL[:12]):
        with pytest.raises(ParameterError, match="another release"):
            release_to(out, GRAPH, EMBED, sources, ledger=ledger)
    assert ledger.charges() == before, "nothing is charged for it"
    forged = release_to(tmp_path / "forged", GRAPH, EMBED, ALL[:5], noise=seeded())
    with pytest.raises(ParameterError, match="another release"):
        release_to(forged.path, GRAPH, EMBED, ALL[:5], ledger=ledger)
    ledger.advance()
    with pytest.raises(ParameterError, match="another release"):
        release_to(out, GRAPH, EMBED, ALL[:5], ledger=ledger)


def test_an_interrupted_call_leaves_nothing_behind(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        release_to(
            tmp_path / "out",
            GRAPH,
            EMBED,
            ALL,
            engine=Local(threads=1),
            progress=stop_after(256),
        )
    assert list(tmp_path.iterdir()) == []


def test_an_empty_folder_is_a_place_to_write_to(tmp_path):
    (tmp_path / "out").mkdir()
    assert len(release_to(tmp_path / "out", GRAPH, EMBED, ALL[:3])) == 3


@pytest.mark.parametrize("what", ["file", "folder", "release"])
def test_foreign_target_is_left_alone_at_no_charge(what, ledger, tmp_path):
    place = tmp_path / "place"
    if what == "file":
        place.write_text("mine")
    elif what == "folder":
        place.mkdir()
        (place / "part-000000-aaaa.parquet").write_text("mine")
    else:
        release_to(place, GRAPH, EMBED, ALL[:3])
    before = sorted((p, p.read_bytes()) for p in [place, *tmp_path.glob("place/*")] if p.is_file())
    with pytest.raises(ParameterError, match="choose another"):
        release_to(place, GRAPH, EMBED, ALL, ledger=ledger)
    after = sorted((p, p.read_bytes()) for p in [place, *tmp_path.glob("place/*")] if p.is_file())
    assert after == before
    assert not ledger.charges()


def test_a_refused_budget_leaves_no_folder(tmp_path):
    poor = Ledger.create(tmp_path / "ledger", epsilon=0.5)
    with pytest.raises(BudgetError):
        release_to(tmp_path / "out", GRAPH, EMBED, ALL, ledger=poor)
    assert not (tmp_path / "out").exists()


def test_changed_or_missing_part_is_refused(ledger, tmp_path, monkeypatch):
    monkeypatch.setattr(drawing, "_BATCH_ROWS", 256)
    folder = release_to(tmp_path / "out", GRAPH, EMBED, ALL, ledger=ledger)
    folder.verify()
    part = folder.path / folder.parts[1].name
    part.write_bytes(part.read_bytes()[:-1])
    with pytest.raises(InputError, match="changed since"):
        folder.verify()
    with pytest.raises(InputError, match="changed since"):
        folder.read()
    shutil.rmtree(folder.path)
    again = release_to(tmp_path / "out", GRAPH, EMBED, ALL, ledger=ledger)
    again.verify()
    assert len(ledger.charges()) == 4


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": 1}', '{"format": 2}'])
def test_a_forged_manifest_is_refused(text, tmp_path):
    folder = release_to(tmp_path / "out", GRAPH, EMBED, ALL[:3])
    (folder.path / "release.json").write_text(text)
    with pytest.raises(InputError):
        ReleaseFolder.open(folder.path)


def test_a_manifest_without_a_word_on_protection_is_refused(tmp_path):
    folder = release_to(tmp_path / "out", GRAPH, EMBED, ALL[:3], noise=seeded())
    manifest = folder.path / "release.json"
    manifest.write_text(manifest.read_text().replace('"private": false', '"other": false'))
    with pytest.raises(InputError, match="guarantee"):
        ReleaseFolder.open(folder.path)


def test_every_part_is_a_release_for_its_member_only(tmp_path):
    folder = release_to(tmp_path / "out", GRAPH, EMBED, ALL)
    assert stat.S_IMODE(folder.path.stat().st_mode) == 0o700
    for part in folder.parts:
        path = folder.path / part.name
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert Release.read(path).guarantee == folder.guarantee
    assert not [p for p in folder.path.iterdir() if p.name.startswith(".")]


def test_progress_counts_rows_and_ends_with_all(tmp_path):
    seen = []
    release_to(tmp_path / "out", GRAPH, EMBED, ALL, progress=lambda *numbers: seen.append(numbers))
    assert [total for _, total in seen] == [900] * 4
    assert sorted(done for done, _ in seen)[-1] == 900


def test_error_in_one_part_is_raised_and_stops_the_others():
    class Broken(DPInstantEmbedding):
        def estimate(self, noised, shared, views):
            raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        release(GRAPH, Broken(epsilon=1.0), ALL, engine=Local(threads=2))


@pytest.mark.parametrize("threads", [0, -1, 1.5, True, "2"])
def test_threads_must_make_sense(threads):
    with pytest.raises(ParameterError, match="threads"):
        Local(threads=threads)


def test_blocks_of_a_large_graph_fill_the_kernels_lanes():
    from edgeveil.flow._kernels import SINGLE_LANES

    # (the engine does not import the kernels, which take long to load)
    for n in (0, 10, 10_000, 140_000, 10**6, 10**9):
        assert runner.rows_at_once(n) % SINGLE_LANES == 0
        assert runner.rows_at_once(n) >= SINGLE_LANES


def test_folder_refuses_other_length_or_candidates(ledger, tmp_path):
    mechanism, members = Suggest(epsilon=1.0), ALL[:5]
    folder = release_to(tmp_path / "out", GRAPH, mechanism, members, ledger=ledger, k=7)
    assert folder.provenance.lists == {"k": 7, "candidates": "all"}
    assert release_to(tmp_path / "out", GRAPH, mechanism, members, ledger=ledger, k=7) == folder
    for options in ({}, {"k": 6}, {"k": 7, "candidates": ALL[:400]}):
        with pytest.raises(ParameterError, match="another length or for other candidates"):
            release_to(tmp_path / "out", GRAPH, mechanism, members, ledger=ledger, **options)
    some = {"ledger": ledger, "k": 7, "candidates": ALL[:400]}
    among = release_to(tmp_path / "among", GRAPH, mechanism, members, **some)
    backwards = some | {"candidates": ALL[399::-1]}
    assert release_to(tmp_path / "among", GRAPH, mechanism, members, **backwards) == among
    with pytest.raises(ParameterError, match="other candidates"):
        release_to(
            tmp_path / "among", GRAPH, mechanism, members, **some | {"candidates": ALL[:399]}
        )
    assert len(ledger.charges()) == 1
    assert ReleaseFolder.open(tmp_path / "among").provenance == among.provenance


def test_generation_declared_after_the_price_stops_the_run(ledger):
    """Whoever saw the price would be charged anew, for another graph than was priced."""
    release(GRAPH, OwnListEmbedding(dimension=8), [0], ledger=ledger)
    job = prepare(GRAPH, EMBED, [1, 2], ledger=ledger)
    assert job.price.in_ledger.generation == 1
    ledger.advance()
    with pytest.raises(LedgerError, match="generation 1, and generation 2 is the current one"):
        job.run()
    assert [charge.n_rows for charge in ledger.charges()] == [1]


def test_generation_declared_between_batches_stops_the_rest(ledger, monkeypatch):
    """Their noise would be drawn for the graph before, and charged as rows of the next."""
    monkeypatch.setattr(drawing, "_BATCH_ROWS", 1)
    options = {"ledger": ledger, "engine": Local(threads=1)}
    with pytest.raises(LedgerError, match="generation 1, and generation 2 is the current one"):
        release(GRAPH, EMBED, range(9), progress=lambda *_: ledger.advance(), **options)
    charges = ledger.charges()
    assert 0 < len(charges) < 9
    assert {charge.generation for charge in charges} == {1}
    assert ledger.generation() == 2


def test_folder_of_other_files_is_never_replaced(tmp_path):
    """Lists of a series are written without a job, which asks the folder first."""
    made = release_to(tmp_path / "made", GRAPH, EMBED, [0], noise=seeded())
    place = tmp_path / "mine"
    place.mkdir()
    (place / "thesis.txt").write_text("three years of work")
    with pytest.raises(ParameterError, match="is not a release"):
        ReleaseFolder.write(place, made.output, made.guarantee, made.provenance, [], overwrite=True)
    assert (place / "thesis.txt").read_text() == "three years of work"
