#!/usr/bin/env python3
"""Makes two npm packages: one that carries the binary, and `ack-memory`, which runs it.

    packaging/npm/pack.py target/dist/ack-memory --out dist

writes `ack-memory-linux-x64-VERSION.tgz`, or the like for another target, and
`ack-memory-VERSION.tgz`. The second is the same for every target: its optional dependencies are
the packages of all targets, and npm installs the one that fits.
"""

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import common

HERE = Path(__file__).resolve().parent


def shared_fields(repository):
    facts = common.product()
    fields = {"version": facts["version"], "description": facts["description"]}
    if "license" in facts:
        # npm reads SPDX expressions with parentheses around a choice.
        choice = " OR " in facts["license"]
        fields["license"] = f"({facts['license']})" if choice else facts["license"]
    if repository:
        fields["homepage"] = repository
        fields["repository"] = {"type": "git", "url": f"git+{repository}.git"}
    return fields


def write_json(path, value):
    path.write_text(json.dumps(value, indent=2) + "\n")


def npm_pack(folder, out):
    """Has npm make the tarball; says where it is."""
    if shutil.which("npm") is None:
        common.fail("npm is not installed")
    done = subprocess.run(
        ["npm", "pack", "--json", "--ignore-scripts", "--pack-destination", str(out.resolve())],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    if done.returncode != 0:
        common.fail(f"npm pack: {done.stderr.strip()}")
    said = json.loads(done.stdout)
    # A list up to npm 11, later an object by the package's name.
    entry = said[0] if isinstance(said, list) else next(iter(said.values()))
    print(out / entry["filename"])


def copy_texts(folder, licences):
    for file in [HERE / "README.md", *licences]:
        shutil.copy(file, folder)


def pack_binary(target, options):
    npm = common.TARGETS[target]["npm"]
    package = {"name": npm["name"], **shared_fields(options.repository)}
    package["description"] = f"The ack-memory binary for {npm['os']} {npm['cpu']}"
    package.update({"os": [npm["os"]], "cpu": [npm["cpu"]]})
    if "libc" in npm:
        package["libc"] = [npm["libc"]]
    # Plug'n'Play keeps packages as archives; a binary has to be a file.
    package.update({"preferUnplugged": True})
    package["files"] = ["bin/ack-memory", "*LICENSE*"]
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        (folder / "bin").mkdir()
        shutil.copy(options.binary, folder / "bin/ack-memory")
        (folder / "bin/ack-memory").chmod(0o755)
        copy_texts(folder, common.licence_files(options.notices))
        write_json(folder / "package.json", package)
        npm_pack(folder, options.out)


def pack_main(options):
    packages = [target["npm"] for target in common.TARGETS.values()]
    version = common.product()["version"]
    package = {
        "name": common.NAME,
        **shared_fields(options.repository),
        "keywords": ["mcp", "memory", "agent", "search"],
        "mcpName": json.loads((common.ROOT / "packaging/server.json").read_text())["name"],
        "bin": {"ack-memory": "bin/ack-memory.js"},
        "files": ["bin/ack-memory.js", "*LICENSE*"],
        "engines": {"node": ">=18"},
        "optionalDependencies": {npm["name"]: version for npm in packages},
    }
    table = {f"{npm['os']} {npm['cpu']}": npm["name"] for npm in packages}
    launcher = (HERE / "launcher.js").read_text()
    marker = "const PACKAGES = {};"
    if launcher.count(marker) != 1:
        common.fail(f"launcher.js has no line `{marker}`")
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        (folder / "bin").mkdir()
        filled = launcher.replace(marker, f"const PACKAGES = {json.dumps(table, indent=2)};")
        (folder / "bin/ack-memory.js").write_text(filled)
        (folder / "bin/ack-memory.js").chmod(0o755)
        copy_texts(folder, common.licence_files())
        write_json(folder / "package.json", package)
        npm_pack(folder, options.out)


def main():
    options = common.arguments(__doc__.split("\n")[0]).parse_args()
    target = common.checked(options)
    pack_binary(target, options)
    pack_main(options)


main()
