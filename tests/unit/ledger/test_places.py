"""Where a ledger may lie, and what is said about it."""

import dataclasses
import pickle
import sys
import time
from pathlib import Path

import pytest

from edgeveil.errors import LedgerError
from edgeveil.ledger import Ledger, sqlite
from edgeveil.ledger.sqlite import mount_of, refuse_unsafe_place

MOUNTINFO = r"""
22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
23 22 0:20 / /proc rw,nosuid - proc proc rw
30 22 0:40 / /home rw,relatime shared:9 - nfs4 server:/export/home rw,vers=4.2
31 30 254:1 / /home/local rw,relatime - xfs /dev/vdb rw
32 22 0:41 / /mnt/my\040share rw - cifs //server/share rw
33 22 254:2 / /data rw - ext4 /dev/vdc rw
34 22 0:42 / /data rw - fuse.sshfs someone@host:/ rw
35 22 0:43 / /tmp/box rw - 9p box rw,trans=virtio
""".lstrip()


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/var/ledger", "ext4"),
        ("/home/alice/ledger", "nfs4"),
        ("/home/local/ledger", "xfs"),
        ("/home/locally/ledger", "nfs4"),
        ("/homes/ledger", "ext4"),
        ("/mnt/my share/ledger", "cifs"),
        ("/data/ledger", "fuse.sshfs"),
        ("/tmp/box/ledger", "9p"),
        ("/", "ext4"),
    ],
)
def test_the_longest_and_latest_mount_point_decides(path, kind):
    assert mount_of(Path(path), MOUNTINFO)[1] == kind


@pytest.mark.parametrize(
    "kind",
    [
        "nfs",
        "nfs4",
        "cifs",
        "smb3",
        "smbfs",
        "9p",
        "lustre",
        "ceph",
        "glusterfs",
        "afs",
        "gpfs",
        "beegfs",
        "virtiofs",
        "fuse.sshfs",
        "fuse.glusterfs",
        "fuse.s3fs",
        "fuse.rclone",
    ],
)
def test_network_file_system_is_refused_naming_postgresql(kind):
    with pytest.raises(LedgerError, match=rf"network file system \({kind}\).*PostgreSQL"):
        refuse_unsafe_place(Path("/x/ledger"), f"1 0 0:1 / /x rw - {kind} source rw\n")


@pytest.mark.parametrize(
    "kind", ["ext4", "xfs", "btrfs", "zfs", "tmpfs", "overlay", "apfs", "f2fs"]
)
def test_a_local_file_system_is_accepted(kind):
    mounts = f"1 0 0:1 / /x rw - {kind} source rw\n"
    assert refuse_unsafe_place(Path("/x/ledger"), mounts) is None  # and nothing raised


def test_create_and_open_refuse_a_network_file_system(tmp_path, monkeypatch, sqlite_place):
    sqlite_place.create(epsilon=1)
    mounts = tmp_path / "mountinfo"
    mounts.write_text(f"1 0 0:1 / {tmp_path.resolve()} rw - nfs4 server:/ rw\n")
    monkeypatch.setattr(sqlite, "MOUNTINFO", mounts)
    with pytest.raises(LedgerError, match="network file system"):
        sqlite_place.open()
    with pytest.raises(LedgerError, match="network file system"):
        Ledger.create(tmp_path / "new", epsilon=1)
    assert not (tmp_path / "new").exists()


def test_without_psycopg_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(LedgerError, match=r"pip install edgeveil\[postgres\]"):
        Ledger.open("postgresql://host/db")


def test_no_password_is_shown_pickled_or_part_of_an_error(postgres_url, tmp_path):
    url = postgres_url.replace("edgeveil@", "edgeveil:hunter2@") + "#secretive"
    ledger = Ledger.create(url, epsilon=1, artifacts=tmp_path)
    for text in (repr(ledger), ledger.location, ledger.show(), repr(pickle.dumps(ledger))):
        assert "hunter2" not in text
        assert "edgeveil" in text
    assert pickle.loads(pickle.dumps(ledger)).epsilon == 1
    for wrong in (
        url,  # exists already
        "postgresql://alice:hunter2@/db?host=/nowhere",
        "postgresql://alice@/db?host=/nowhere&password=hunter2",
        "postgresql://alice:hunter2@localhost:notaport/db",
        "postgresql://alice:hunter2@/db?what=hunter2",
        "postgresql://alice:hunter2#@/db",
    ):
        with pytest.raises(LedgerError) as error:
            Ledger.create(wrong, epsilon=1)
        assert "hunter2" not in str(error.value)
        assert error.value.__cause__ is None
        assert error.value.__suppress_context__ or error.value.__context__ is None
        assert "\n" not in str(error.value)


def test_postgres_without_artifacts_folder_reserves_nothing(postgres_place, public, reserve):
    postgres_place.create(epsilon=1)
    ledger = Ledger.open(postgres_place.location)
    with pytest.raises(LedgerError, match="artifacts="):
        reserve(ledger, "1", public(1))
    assert ledger.charges() == []
    assert ledger.account().left == 1


def test_two_schemas_of_a_database_are_two_ledgers(new_place, public, reserve):
    first, second = new_place(), new_place()
    reserve(first.create(epsilon=1), "1", public(1))
    assert second.create(epsilon=2).account().left == 2
    assert first.open().account().left == 0


def test_postgres_commit_is_synchronous_despite_session(postgres_place):
    url = postgres_place.location.replace("#", "&options=-csynchronous_commit%3Doff#")
    ledger = Ledger.create(url, epsilon=1, artifacts=postgres_place.artifacts)
    with ledger._store.transaction(write=True) as transaction:
        assert transaction.run("SHOW synchronous_commit") == [("on",)]


def test_a_server_that_may_forget_commits_is_refused(postgres_place):
    def switch(value):
        postgres_place.raw(f"ALTER SYSTEM SET fsync = {value}", "SELECT pg_reload_conf()")
        for _ in range(1200):
            if postgres_place.raw("SHOW fsync") == [(value,)]:
                return
            time.sleep(0.05)
        pytest.fail("the server does not reload its settings")

    switch("off")
    try:
        with pytest.raises(LedgerError, match="fsync = off"):
            postgres_place.create(epsilon=1)
    finally:
        switch("on")
    postgres_place.create(epsilon=1)  # nothing was left behind


def test_append_only_role_can_release_but_change_nothing(postgres_place, public, reserve):
    postgres_place.create(epsilon=1)
    _, _, schema = postgres_place.location.partition("#")
    role = f"releaser_{schema}"
    postgres_place.raw(
        f"CREATE ROLE {role} LOGIN",
        f"GRANT USAGE ON SCHEMA {schema} TO {role}",
        f"GRANT SELECT, INSERT ON ALL TABLES IN SCHEMA {schema} TO {role}",
        f"GRANT DELETE ON secrets TO {role}",
    )
    place = dataclasses.replace(
        postgres_place, location=postgres_place.location.replace("edgeveil@", f"{role}@")
    )
    reserve(place.open(), "1", public(1)).store(lambda path: path.write_text("x"))
    place.open().verify()
    for statement in ("UPDATE charges SET epsilon_nano = 0", "DELETE FROM charges"):
        with pytest.raises(Exception, match="permission denied"):
            place.raw(statement)


def test_a_path_with_strange_characters_is_the_path_that_is_used(tmp_path):
    path = tmp_path / "a b?mode=ro#c%20d"
    Ledger.create(path, epsilon=1)
    assert path.is_file()
    assert Ledger.open(path).epsilon == 1
