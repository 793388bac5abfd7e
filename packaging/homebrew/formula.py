#!/usr/bin/env python3
"""Fills in the Homebrew formula from the archives of a release.

    packaging/homebrew/formula.py --repository URL --out dist dist/*.tar.gz

The archives are those of archive.py; they are expected to be published at
`URL/releases/download/vVERSION/`.
"""

import argparse
import hashlib
import re
import sys
import tarfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import common

TEMPLATE = Path(__file__).resolve().parent / "ack-memory.rb.in"
ORDER = {"macos": ("arm", "intel"), "linux": ("arm", "intel")}


def licence(expression):
    names = [f'"{name}"' for name in expression.split(" OR ")]
    return f"any_of: [{', '.join(names)}]" if len(names) > 1 else names[0]


def by_platform(archives, version):
    """The archives by `macos-arm` and the like."""
    found = {}
    for path in archives:
        name = re.fullmatch(rf"{common.NAME}-{re.escape(version)}-(.+)\.tar\.gz", path.name)
        if name is None or name.group(1) not in common.TARGETS:
            common.fail(f"{path} is no archive of version {version}")
        found[common.TARGETS[name.group(1)]["homebrew"]] = path
    return found


def stanzas(found, base):
    for system, processors in ORDER.items():
        inner = []
        for processor in processors:
            path = found.get(f"{system}-{processor}")
            if path is None:
                continue
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
            inner += [
                f"    on_{processor} do",
                f'      url "{base}/{path.name}"',
                f'      sha256 "{digest}"',
                "    end",
            ]
        if inner:
            yield "\n".join([f"  on_{system} do", *inner, "  end"])


def has(archives, folder):
    """Whether all archives have files in a folder. Fails if only some do."""
    have = []
    for path in archives:
        with tarfile.open(path) as archive:
            have.append(any(f"/{folder}/" in name for name in archive.getnames()))
    if any(have) != all(have):
        common.fail(f"some archives have {folder}/ and others do not")
    return all(have)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("archives", nargs="+", type=Path, metavar="ARCHIVE")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="output folder")
    parser.add_argument("--repository", required=True, metavar="URL")
    options = parser.parse_args()
    facts = common.product()
    version = facts["version"]
    found = by_platform(options.archives, version)
    base = f"{options.repository}/releases/download/v{version}"
    if not has(options.archives, "completions"):
        common.fail("the archives have no completions")
    man = '    man1.install Dir["man/*.1"]' if has(options.archives, "man") else ""
    text = TEMPLATE.read_text()
    for key, value in {
        "REPOSITORY": options.repository,
        "VERSION": version,
        "LICENCE": licence(facts["license"]) if "license" in facts else ":cannot_represent",
        "ARCHIVES": "\n\n".join(stanzas(found, base)),
    }.items():
        text = text.replace(f"@{key}@", value)
    text = text.replace("@MAN@\n", f"{man}\n" if man else "")
    options.out.mkdir(parents=True, exist_ok=True)
    path = options.out / "ack-memory.rb"
    path.write_text(text)
    print(path)


main()
