"""Reading what runs left, as a client does."""

import base64
import os

from host import patience

RANGE = "bulkhead/range"
MOST = 1 << 20  # bytes of one read


def content_bytes(content):
    return content["text"].encode() if "text" in content else base64.b64decode(content["blob"])


def read_part(client, uri):
    """The bytes of one read and its range."""
    content = client.request("resources/read", {"uri": uri}).result(patience(60))["contents"][0]
    data = content_bytes(content)
    place = content["_meta"][RANGE]
    assert place["bytes"] == len(data) <= MOST, place
    return data, place


def read_whole(client, uri):
    """All that is kept, part by part, and the last part's range."""
    whole = bytearray()
    while True:
        data, place = read_part(client, f"{uri}?offset={len(whole)}")
        assert place["offset"] == len(whole)
        whole += data
        if "nextOffset" not in place:
            return bytes(whole), place
        assert place["nextOffset"] == len(whole)


def listed(client):
    """Every resource there is, page by page."""
    found, cursor = [], None
    while True:
        page = client.request("resources/list", {"cursor": cursor} if cursor else {}).result(patience(60))
        found += page["resources"]
        cursor = page.get("nextCursor")
        if not cursor:
            return found


def error_of(client, uri):
    """The error that reading a resource gives."""
    message = client.request("resources/read", {"uri": uri}).message(patience(60))
    return message.get("error")


def bytes_kept(world):
    """All bytes below the state folder's artifacts, the lock aside."""
    total = 0
    for folder, _, files in os.walk(os.path.join(world.state, "artifacts")):
        for name in files:
            try:
                total += os.lstat(os.path.join(folder, name)).st_size if name != "lock" else 0
            except FileNotFoundError:
                pass  # gone meanwhile
    return total
