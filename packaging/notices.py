#!/usr/bin/env python3
"""Collects the licences of all crates that are linked into the binary.

    packaging/notices.py --target x86_64-unknown-linux-gnu --out dist

writes `THIRD-PARTY-LICENSES.txt`. Equal texts appear once, after the crates that they are for. With
`--no-default-features`, the crates are those of a build without LanceDB.
"""

import argparse
import json
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import common

# How the files that hold a licence or a notice begin.
BEGINNINGS = ("license", "licence", "copying", "copyright", "notice", "unlicense")


def metadata(target, features):
    command = ["cargo", "metadata", "--format-version=1", "--locked", "--filter-platform", target]
    done = subprocess.run(
        [*command, *features], cwd=common.ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE
    )
    if done.returncode != 0:
        sys.exit(done.returncode)
    return json.loads(done.stdout)


def linked(facts):
    """The packages that the product is linked with: not those of builds and tests alone."""
    packages = {package["id"]: package for package in facts["packages"]}
    nodes = {node["id"]: node for node in facts["resolve"]["nodes"]}
    (root,) = (key for key, package in packages.items() if package["name"] == common.NAME)
    found, waiting = set(), [root]
    while waiting:
        key = waiting.pop()
        if key in found:
            continue
        found.add(key)
        for dependency in nodes[key]["deps"]:
            if any(kind["kind"] is None for kind in dependency["dep_kinds"]):
                waiting.append(dependency["pkg"])
    chosen = [packages[key] for key in found if packages[key]["source"] is not None]
    return sorted(chosen, key=lambda package: (package["name"], package["version"]))


def texts(package):
    """The texts that a package has in its folder, or in one for licences."""
    folder = Path(package["manifest_path"]).parent
    folders = [folder, *folder.glob("[Ll][Ii][Cc]*/")]
    files = [file for part in folders for file in part.iterdir()]
    named = [file for file in files if file.name.lower().startswith(BEGINNINGS)]
    if package.get("license_file"):
        named.append(folder / package["license_file"])
    for file in sorted(set(named)):
        if file.is_file() and file.suffix not in (".rs", ".toml", ".html"):
            yield file.read_text(encoding="utf-8", errors="replace").strip()


def write(packages, out):
    by_text = defaultdict(list)
    without = []
    for package in packages:
        name = f"{package['name']} {package['version']} ({package['license'] or 'see below'})"
        own = list(texts(package))
        if not own:
            authors = ", ".join(package["authors"])
            without.append(f"{name}{f', {authors}' if authors else ''}")
        for text in own:
            by_text[text].append(name)
    rule = "=" * 100
    parts = [f"{common.NAME} is linked with these {len(packages)} crates, under these licences."]
    for text, names in sorted(by_text.items(), key=lambda item: item[1]):
        parts += [rule, "\n".join(names), text]
    if without:
        note = "These crates name their licence and carry no text of it:"
        parts += [rule, "\n".join([note, *without])]
    out.mkdir(parents=True, exist_ok=True)
    path = out / "THIRD-PARTY-LICENSES.txt"
    path.write_text("\n\n".join(parts) + "\n")
    print(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--target", choices=sorted(common.TARGETS), required=True)
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="output folder")
    parser.add_argument("--no-default-features", action="store_true")
    options = parser.parse_args()
    features = ["--no-default-features"] if options.no_default_features else []
    write(linked(metadata(options.target, features)), options.out)


main()
