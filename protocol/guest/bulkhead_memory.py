"""Memories: JSON values by key in /projects/memory, one file each, kept from run to run.

Other runs write there at the same time, and may have left anything there.
"""
import os
import stat
import time

import bulkhead_files
from bulkhead_envelope import FILE_BYTES, Memory, envelope
from bulkhead_names import file_name, key_of, names_of
from bulkhead_report import print_error
from bulkhead_runtime import MCPError, MemoryQuotaError
from bulkhead_store import Locked, failed, remove, remove_leftover, replace

MEMORIES = 10_000
TOTAL_BYTES = 64 * 1024 * 1024
LISTED_BYTES = 2 * TOTAL_BYTES
NAMES_SEEN = 100_000
LOCK = ".lock"


def folder_path():
    return bulkhead_files.FOLDER + "/memory"


class Folder:
    """Context: the folder of the memories, open. Without `create`, `descriptor` is None if there is
    none."""

    def __init__(self, create=False):
        self._create = create
        self.descriptor = None

    def __enter__(self):
        try:
            if self._create:
                try:
                    os.mkdir(folder_path(), 0o777)
                except FileExistsError:
                    pass
            self.descriptor = bulkhead_files.open_folder(folder_path())
        except FileNotFoundError as failure:
            if self._create:
                raise failed("open %s" % bulkhead_files.FOLDER, failure) from None
        except NotADirectoryError:
            raise MCPError("open %s: it isn't a folder; remove it" % folder_path(),
                           "unavailable") from None
        except OSError as failure:
            raise failed("open %s" % folder_path(), failure) from None
        return self

    def __exit__(self, *failure):
        if self.descriptor is not None:
            os.close(self.descriptor)

    def locked(self):
        return Locked(self.descriptor, folder_path(), LOCK)

    def scan(self):
        """(name, status) of each regular file that may be a memory; the number of what is no such
        file; whether that is all, or only what the first NAMES_SEEN names are."""
        files, others, complete = [], 0, True
        with os.scandir(self.descriptor) as entries:
            for count, entry in enumerate(entries):
                if count == NAMES_SEEN:
                    complete = False
                    break
                if not entry.name.endswith(".json") or entry.name.startswith("."):
                    remove_leftover(self.descriptor, entry.name)
                    continue
                try:
                    status = entry.stat(follow_symlinks=False)
                except OSError:
                    continue  # gone meanwhile
                if stat.S_ISREG(status.st_mode):
                    files.append((entry.name, status))
                else:
                    others += 1
        return files, others, complete


# What code calls

def save(key, value, metadata):
    _check_key(key)
    with Folder(create=True) as folder, folder.locked():
        _write(folder, key, value, metadata, _find_readable(folder, key))
    return "Memory %r saved." % key


def load(key, default):
    memory = _find_outside(key)
    return default if memory is None else memory.value


def update(key, change, default):
    _check_key(key)
    with Folder(create=True) as folder, folder.locked():
        memory = _find(folder, key)
        value = change
        if callable(change):
            before = default if memory is None else memory.value
            value = change(before)
            if value is None and before is not None:
                raise MCPError("update_memory(%r): the function returned None, and nothing was "
                               "changed; it has to return the new value (list.append and "
                               "dict.update don't)" % key, "invalid_argument")
        _write(folder, key, value, None, memory)
    return value


def delete(key):
    _check_key(key)
    with Folder() as folder:
        if folder.descriptor is None:
            return False
        with folder.locked():
            # All of them: an older one must not appear in place of the one removed.
            return any([_delete(folder, name) for name in _names_that_are(folder, key)])


def exists(key):
    _check_key(key)
    with Folder() as folder:
        try:
            return folder.descriptor is not None and _find(folder, key) is not None
        except MCPError:
            return True  # something that load_memory complains of and delete_memory removes


def info(key):
    memory = _find_outside(key)
    return None if memory is None else {**memory.described(key), "value": memory.value}


def listed(prefix):
    if prefix is not None and not isinstance(prefix, str):
        raise MCPError("the prefix of keys is a str, not %s" % type(prefix).__name__,
                       "invalid_argument")
    with Folder() as folder:
        if folder.descriptor is None:
            return []
        files, others, complete = folder.scan()
        files.sort()
        found = {}
        room = LISTED_BYTES
        for position, (name, status) in enumerate(files):
            room -= min(status.st_size, FILE_BYTES)
            if len(found) == MEMORIES or room < 0:
                others += len(files) - position
                break
            _list_one(folder, name, prefix or "", found)
    if others or not complete:
        print_error("list_memories: %s%d entries of %s are left out: no regular files, or too "
                    "many\n" % ("" if complete else "more than ", others, folder_path()))
    return [found[key] for key in sorted(found)]


def _list_one(folder, name, prefix, found):
    try:
        memory = _read(folder, name, with_value=False)
        key = memory.owner()
        entry = memory.described(key or name)
        if key is None:
            entry["error"] = "the name of the file doesn't belong to its key"
    except FileNotFoundError:
        return
    except MCPError as failure:
        key = key_of(name)
        entry = {"key": key or name, "error": str(failure)}
    if entry["key"].startswith(prefix) and (
            entry["key"] not in found or key is not None and name == file_name(key)):
        found[entry["key"]] = entry


# Files

def _check_key(key):
    try:
        names_of(key)
    except (TypeError, ValueError) as failure:
        raise MCPError("the key of a memory %s" % failure, "invalid_argument") from None


def _read(folder, name, with_value=True):
    """The memory in a file; FileNotFoundError, or MCPError if it can't be read."""
    where = "read %s/%s" % (folder_path(), name)
    try:
        content, status = bulkhead_files.read_regular(name, FILE_BYTES, folder.descriptor)
        return Memory(name, content, status, with_value)
    except bulkhead_files.Unreadable as reason:
        raise MCPError("%s: %s; remove it, or save the memory anew" % (where, reason),
                       "unavailable") from None
    except (ValueError, RecursionError) as failure:
        raise MCPError("%s: it isn't JSON that can be read here: %s; remove it, or save the memory "
                       "anew" % (where, failure), "unavailable") from None


def _owner(folder, name, key):
    """The key that a file belongs to: `key`, if it tells none and its name is that of `key`.
    FileNotFoundError."""
    try:
        owner = _read(folder, name, with_value=False).owner()
    except MCPError:
        owner = key_of(name)
    return key if owner is None and name == file_name(key) else owner


def _names_that_are(folder, key):
    """The names under which there is something of this key."""
    found = []
    for name in names_of(key):
        try:
            if _owner(folder, name, key) == key:
                found.append(name)
        except FileNotFoundError:
            pass
    return found


def _find(folder, key):
    """The memory of a key, or None; MCPError if it can't be read."""
    for name in names_of(key):
        try:
            memory = _read(folder, name)
        except FileNotFoundError:
            continue
        except MCPError:
            if key_of(name) == key or name == file_name(key):
                raise
            continue
        owner = memory.owner()
        if owner == key or owner is None and name == file_name(key):
            return memory
    return None


def _find_outside(key):
    _check_key(key)
    with Folder() as folder:
        return None if folder.descriptor is None else _find(folder, key)


def _find_readable(folder, key):
    try:
        return _find(folder, key)
    except MCPError:
        return None


def _delete(folder, name):
    try:
        os.unlink(name, dir_fd=folder.descriptor)
    except FileNotFoundError:
        return False
    except OSError as failure:
        raise failed("delete %s/%s" % (folder_path(), name), failure) from None
    return True


def _write(folder, key, value, metadata, before):
    now = time.time()
    if metadata is None:
        metadata = before.metadata if before is not None else {}
    elif not isinstance(metadata, dict):
        raise MCPError("the metadata of a memory is a dict, not %s" % type(metadata).__name__,
                       "invalid_argument")
    content = envelope(key, value, metadata, now if before is None else before.created_at, now)
    name = file_name(key)
    _check_quota(folder, key, content)
    _make_way(folder, key, name)
    replace(folder.descriptor, folder_path(), name, content)
    for older in _names_that_are(folder, key):
        if older != name:
            remove(folder.descriptor, older)


def _make_way(folder, key, name):
    """The older bridge wrote the keys "a.b" and "a_b" to one file: the other one moves."""
    try:
        other = _owner(folder, name, key)
        if other != key and not _is_there(folder, file_name(other)):
            os.rename(name, file_name(other), src_dir_fd=folder.descriptor,
                      dst_dir_fd=folder.descriptor)
    except FileNotFoundError:
        pass
    except OSError as failure:
        raise failed("rename %s/%s" % (folder_path(), name), failure) from None


def _is_there(folder, name):
    try:
        os.lstat(name, dir_fd=folder.descriptor)
        return True
    except OSError:
        return False


def _check_quota(folder, key, content):
    own = names_of(key)
    count = total = before = 0
    for name, status in folder.scan()[0]:
        if name in own:
            before = max(before, status.st_size)
        else:
            count += 1
            total += status.st_size
    if before == 0 and count >= MEMORIES:
        raise MemoryQuotaError("save the memory %r: there are %d, and %d are allowed; delete some "
                               "(list_memories, delete_memory)" % (key, count, MEMORIES))
    if total + len(content) > TOTAL_BYTES and len(content) > before:
        raise MemoryQuotaError(
            "save the memory %r: all would take %d bytes, and %d are allowed; delete some "
            "(list_memories tells sizes)" % (key, total + len(content), TOTAL_BYTES))
