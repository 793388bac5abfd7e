"""Which glibc an ELF executable needs: its libraries and their symbol versions."""

import struct

LOAD, DYNAMIC = 1, 2
NEEDED, STRTAB, VERNEED, VERNEEDNUM = 1, 5, 0x6FFFFFFE, 0x6FFFFFFF


class Elf:
    """The dynamic section of a 64-bit little-endian ELF file."""

    def __init__(self, data):
        if data[:6] != b"\x7fELF\x02\x01":
            raise ValueError("not a 64-bit little-endian ELF file")
        self.data = data
        (offset,) = struct.unpack_from("<Q", data, 32)
        size, count = struct.unpack_from("<HH", data, 54)
        self.segments = [
            # type, flags, offset, address, physical address, size in the file
            struct.unpack_from("<IIQQQQ", data, offset + index * size)
            for index in range(count)
        ]
        self.entries = list(self._entries())

    def _entries(self):
        for kind, _, offset, _, _, size in self.segments:
            if kind != DYNAMIC:
                continue
            for at in range(offset, offset + size, 16):
                tag, value = struct.unpack_from("<QQ", self.data, at)
                if tag == 0:
                    return
                yield tag, value

    def _values(self, wanted):
        return [value for tag, value in self.entries if tag == wanted]

    def _offset(self, address):
        for kind, _, offset, start, _, size in self.segments:
            if kind == LOAD and start <= address < start + size:
                return address - start + offset
        raise ValueError(f"no segment holds the address {address:#x}")

    def _string(self, index):
        start = self._offset(self._values(STRTAB)[0]) + index
        return self.data[start : self.data.index(b"\0", start)].decode()

    def libraries(self):
        return [self._string(index) for index in self._values(NEEDED)]

    def versions(self):
        """The symbol versions that are needed, by library."""
        needed = {}
        if not self._values(VERNEED):
            return needed
        at = self._offset(self._values(VERNEED)[0])
        for _ in range(self._values(VERNEEDNUM)[0]):
            _, count, file, first, next_file = struct.unpack_from("<HHIII", self.data, at)
            names = needed.setdefault(self._string(file), set())
            entry = at + first
            for _ in range(count):
                _, _, _, name, next_entry = struct.unpack_from("<IHHII", self.data, entry)
                names.add(self._string(name))
                entry += next_entry
            at += next_file
        return needed
