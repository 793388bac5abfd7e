#!/usr/bin/env python3
"""Makes the archive of a release: the binary, licences, completions and man pages.

    packaging/archive.py target/dist/ack-memory --out dist

writes `ack-memory-VERSION-TARGET.tar.gz`, and beside it the same name with `.sha256`, which
`sha256sum -c` reads. The binary itself prints the completions and man pages; if it cannot run on
this machine, they are left out.
"""

import gzip
import hashlib
import io
import itertools
import sys
import tarfile
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import common

COMPLETIONS = {
    "bash": "ack-memory.bash",
    "elvish": "ack-memory.elv",
    "fish": "ack-memory.fish",
    "powershell": "_ack-memory.ps1",
    "zsh": "_ack-memory",
}


def completions(binary):
    for shell, name in COMPLETIONS.items():
        text = common.run(binary, "completions", shell)
        if text is None:
            print(f"no completions for {shell}: the binary makes none here", file=sys.stderr)
        else:
            yield f"completions/{name}", text.encode()


def man_pages(binary):
    with tempfile.TemporaryDirectory() as folder:
        if common.run(binary, "man", folder) is None:
            print("no man pages: the binary makes none here", file=sys.stderr)
        for page in sorted(Path(folder).rglob("*.[1-9]")):
            yield f"man/{page.name}", page.read_bytes()


def texts(options):
    files = [common.ROOT / name for name in ("README.md", "CHANGELOG.md")]
    for file in [*files, *common.licence_files(options.notices)]:
        if file.is_file():
            yield file.name, file.read_bytes()


def add(archive, name, data, mode=0o644):
    # No date and no owner: the same files give the same archive.
    entry = tarfile.TarInfo(name)
    entry.size = len(data)
    entry.mode = mode
    archive.addfile(entry, io.BytesIO(data))


def main():
    options = common.arguments(__doc__.split("\n")[0]).parse_args()
    target = common.checked(options)
    folder = f"{common.NAME}-{common.product()['version']}-{target}"
    path = options.out / f"{folder}.tar.gz"
    with open(path, "wb") as file:
        with gzip.GzipFile("", "wb", 6, file, mtime=0) as packed:
            with tarfile.open(fileobj=packed, mode="w") as archive:
                add(archive, f"{folder}/{common.NAME}", options.binary.read_bytes(), 0o755)
                made = [completions(options.binary), man_pages(options.binary)]
                for name, data in itertools.chain(texts(options), *made):
                    add(archive, f"{folder}/{name}", data)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    Path(f"{path}.sha256").write_text(f"{digest}  {path.name}\n")
    print(path)


main()
