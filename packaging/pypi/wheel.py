#!/usr/bin/env python3
"""Makes a wheel that installs the binary as a script.

    packaging/pypi/wheel.py target/dist/ack-memory --out dist

The platform tag of a Linux wheel follows from the binary: the newest glibc symbol that it needs.
"""

import base64
import hashlib
import re
import stat
import sys
import zipfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import common
from elf import Elf

HERE = Path(__file__).resolve().parent
DISTRIBUTION = common.NAME.replace("-", "_")
# What the manylinux standard (PEP 600) lets a program expect of every distribution.
ALLOWED_LIBRARIES = {
    "libc.so.6",
    "libm.so.6",
    "libdl.so.2",
    "librt.so.1",
    "libpthread.so.0",
    "libgcc_s.so.1",
    "ld-linux-x86-64.so.2",
    "ld-linux-aarch64.so.1",
}
# The newest version of libgcc's symbols in the oldest distributions that are still in use.
NEWEST_GCC = (7, 0, 0)
# Pip knows no manylinux tag below these: the standard's first, and arm64's first glibc.
OLDEST_GLIBC = {"x86_64": (2, 5), "aarch64": (2, 17)}


def numbers(version):
    return tuple(int(part) for part in version.split("."))


def manylinux(binary, processor):
    """The tag for the distributions that can run the binary."""
    elf = Elf(binary)
    foreign = sorted(set(elf.libraries()) - ALLOWED_LIBRARIES)
    if foreign:
        common.fail(f"the binary needs libraries that not every Linux has: {', '.join(foreign)}")
    glibc = OLDEST_GLIBC[processor]
    for library, versions in elf.versions().items():
        for version in versions:
            prefix, _, number = version.partition("_")
            if prefix == "GLIBC" and re.fullmatch(r"[\d.]+", number):
                glibc = max(glibc, numbers(number)[:2])
            elif version == "GLIBC_ABI_DT_RELR":
                glibc = max(glibc, (2, 36))
            elif prefix != "GCC" or numbers(number) > NEWEST_GCC:
                common.fail(f"the binary needs {version} of {library}, which has no tag")
    return f"manylinux_{glibc[0]}_{glibc[1]}_{processor}"


def platform_tag(binary, target):
    tag = common.TARGETS[target]["wheel"]
    return manylinux(binary, target.split("-")[0]) if tag == "manylinux" else tag


def metadata(facts, version, options):
    lines = [
        "Metadata-Version: 2.4",
        f"Name: {common.NAME}",
        f"Version: {version}",
        f"Summary: {facts['description']}",
        "Keywords: mcp,memory,agent,search",
    ]
    if "license" in facts:
        lines.append(f"License-Expression: {facts['license']}")
    lines += [f"License-File: {file.name}" for file in common.licence_files(options.notices)]
    lines += [
        "Classifier: Environment :: Console",
        "Classifier: Programming Language :: Rust",
        "Requires-Python: >=3.8",
    ]
    if options.repository:
        lines.append(f"Project-URL: Repository, {options.repository}")
    lines += ["Description-Content-Type: text/markdown", "", (HERE / "README.md").read_text()]
    return "\n".join(lines)


class Wheel:
    """A zip archive that keeps the record of what it holds."""

    def __init__(self, path):
        self.zip = zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED)
        self.record = []

    def add(self, name, data, mode=0o644):
        # A fixed date, so that the same binary gives the same wheel.
        entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
        entry.external_attr = (stat.S_IFREG | mode) << 16
        entry.compress_type = zipfile.ZIP_DEFLATED
        # 3 is Unix: pip reads the mode only there.
        entry.create_system = 3
        self.zip.writestr(entry, data)
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        self.record.append(f"{name},sha256={digest},{len(data)}")

    def close(self, name):
        self.record.append(f"{name},,")
        text = "".join(f"{line}\n" for line in self.record)
        self.add(name, text.encode())
        self.zip.close()


def main():
    parser = common.arguments(__doc__.split("\n")[0])
    parser.add_argument("--platform-tag", metavar="TAG", help="instead of the one found out")
    options = parser.parse_args()
    target = common.checked(options)
    facts = common.product()
    version = common.python_version(facts["version"])
    binary = options.binary.read_bytes()
    tag = f"py3-none-{options.platform_tag or platform_tag(binary, target)}"
    path = options.out / f"{DISTRIBUTION}-{version}-{tag}.whl"
    info = f"{DISTRIBUTION}-{version}.dist-info"
    wheel = Wheel(path)
    wheel.add(f"{DISTRIBUTION}-{version}.data/scripts/{common.NAME}", binary, 0o755)
    wheel.add(f"{info}/METADATA", metadata(facts, version, options).encode())
    for licence in common.licence_files(options.notices):
        wheel.add(f"{info}/licenses/{licence.name}", licence.read_bytes())
    generator = "Wheel-Version: 1.0\nGenerator: ack-memory\nRoot-Is-Purelib: false\n"
    wheel.add(f"{info}/WHEEL", f"{generator}Tag: {tag}\n".encode())
    wheel.close(f"{info}/RECORD")
    print(path)


main()
