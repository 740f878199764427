"""Reads the PNG files that the guest writes, by the PNG specification and nothing of the guest."""
import struct
import zlib

_CHANNELS = {0: 1, 2: 3, 4: 2, 6: 4}


def size_and_pixels(data):
    """(width, height, channels, pixels) of a PNG file of 8 bits a channel without filters."""
    assert data.startswith(b"\x89PNG\r\n\x1a\n"), data[:20]
    position, chunks = 8, []
    while position < len(data):
        length, kind = struct.unpack_from(">I4s", data, position)
        content = data[position + 8:position + 8 + length]
        check, = struct.unpack_from(">I", data, position + 8 + length)
        assert check == zlib.crc32(kind + content), kind
        chunks.append((kind, content))
        position += 12 + length
    assert [kind for kind, _ in chunks] == [b"IHDR", b"IDAT", b"IEND"], chunks
    width, height, depth, color, compression, filters, interlace = struct.unpack(
        ">IIBBBBB", chunks[0][1])
    assert (depth, compression, filters, interlace) == (8, 0, 0, 0)
    channels = _CHANNELS[color]
    raw = zlib.decompress(chunks[1][1])
    stride = width * channels + 1
    rows = [raw[start:start + stride] for start in range(0, len(raw), stride)]
    assert len(rows) == height and all(row[0] == 0 for row in rows)
    return width, height, channels, b"".join(row[1:] for row in rows)
