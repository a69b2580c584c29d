"""Files appear whole or not at all, and durably."""

import errno
import hashlib
import os

import pytest

from edgeveil._internal.files import move, sha256_of, sync_folder, write_atomically


def test_failed_write_leaves_the_old_file_and_nothing_else(tmp_path):
    target = tmp_path / "file"
    target.write_text("before")

    def write(path):
        path.write_text("half")
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        write_atomically(target, write)
    assert target.read_text() == "before"
    assert os.listdir(tmp_path) == ["file"]


def test_content_and_name_are_flushed_in_that_order(tmp_path, monkeypatch):
    flushed = []

    def note(handle):
        path = os.readlink(f"/proc/self/fd/{handle}")
        flushed.append((path == str(tmp_path), (tmp_path / "file").exists()))

    if not os.path.isdir("/proc/self/fd"):
        pytest.skip("no /proc to see which file is flushed")
    monkeypatch.setattr(os, "fsync", note)
    write_atomically(tmp_path / "file", lambda path: path.write_text("x"))
    assert flushed == [(False, False), (True, True)]  # the draft, then the folder


@pytest.mark.parametrize("code", [errno.EINVAL, errno.ENOTSUP])
def test_a_file_system_that_cannot_flush_folders_is_no_error(tmp_path, monkeypatch, code):
    def fail(handle):
        raise OSError(code, "no")

    (tmp_path / "a").write_text("x")
    monkeypatch.setattr(os, "fsync", fail)
    move(tmp_path / "a", tmp_path / "b")
    assert (tmp_path / "b").read_text() == "x"


@pytest.mark.skipif(os.name == "nt", reason="folders are not flushed there")
def test_a_disk_that_fails_is_an_error(tmp_path, monkeypatch):
    def fail(handle):
        raise OSError(errno.EIO, "broken")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="broken"):
        sync_folder(tmp_path)


def test_the_digest_is_that_of_the_content(tmp_path):
    (tmp_path / "a").write_bytes(b"abc" * 10**5)
    assert sha256_of(tmp_path / "a") == hashlib.sha256(b"abc" * 10**5).hexdigest()
