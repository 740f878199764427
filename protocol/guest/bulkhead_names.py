"""Keys of memories as file names, injectively, also where a file system ignores case, normalises
Unicode or takes no more than 143 bytes: names have lower case, digits and `-_.%` only.

Names that Bulkhead doesn't write are understood, too: `Key.json` as a person would call it, and
those of the older Python bridge, which put `_` for whatever isn't a letter, digit, `_` or `-`.
"""
KEY_CHARACTERS = 1024
_LITERAL_BYTES = 200
_STEM = 120  # more than this is hashed
_PLAIN = frozenset(b"abcdefghijklmnopqrstuvwxyz0123456789-_.")
_OLDER = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")
_HASH = "%-"  # no escape, so it is in no other name


def file_name(key):
    """The name under which the key's memory is written. TypeError or ValueError: what is wrong with
    the key, to be read after "the key of a memory"."""
    if not isinstance(key, str):
        raise TypeError("is a str, not %s" % type(key).__name__)
    if not key:
        raise ValueError("is empty; give it some text")
    if len(key) > KEY_CHARACTERS:
        raise ValueError("has %d characters, and %d are allowed" % (len(key), KEY_CHARACTERS))
    try:
        data = key.encode()
    except UnicodeEncodeError:
        raise ValueError("isn't valid Unicode: %r" % key[:100]) from None
    stem = "".join(chr(byte) if byte in _PLAIN else "%%%02x" % byte for byte in data)
    if stem[0] == ".":  # hidden, and Bulkhead's own
        stem = "%2e" + stem[1:]
    if len(stem) > _STEM:
        from hashlib import sha256

        stem = stem[:40].rpartition("%")[0] or stem[:40]
        stem += _HASH + sha256(data).hexdigest()
    return stem + ".json"


def names_of(key):
    """All names that a key's file may have, the one that is written first."""
    names = [file_name(key)]
    literal = key + ".json"
    if not (key[0] == "." or "/" in key or "\0" in key or "%" in key
            or len(literal.encode()) > _LITERAL_BYTES):
        names.append(literal)
    names.append("".join(each if each in _OLDER else "_" for each in key.strip())[:100]
                 + ".json")
    return list(dict.fromkeys(names))


def key_of(name):
    """The key that a file name stands for by itself; None if it tells none, as a hashed one."""
    stem = name[:-len(".json")]
    key = stem
    if "%" in stem:
        head, *escaped = stem.split("%")
        try:
            key = (head.encode() + b"".join(
                bytes.fromhex(part[:2]) + part[2:].encode() for part in escaped)).decode()
        except ValueError:  # UnicodeDecodeError included
            return None
    try:
        return key if name in names_of(key) else None
    except ValueError:
        return None
