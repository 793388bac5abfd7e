#!/usr/bin/env python3
"""Makes an `.mcpb` bundle: the binary and a manifest, for clients that install with a click.

    packaging/mcpb/pack.py target/dist/ack-memory --out dist --mcpb node_modules/.bin/mcpb

The bundle is for the platform of the binary alone. `mcpb` is the command of the npm package
`@anthropic-ai/mcpb`; it also checks the manifest.
"""

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import common


def manifest(target, repository):
    value = json.loads((common.ROOT / "packaging/manifest.json").read_text())
    facts = common.product()
    value["version"] = facts["version"]
    value["compatibility"]["platforms"] = [common.TARGETS[target]["mcpb"]]
    if "license" in facts:
        value["license"] = facts["license"]
    if repository:
        value["repository"] = {"type": "git", "url": repository}
    return value


def mcpb(command, *args):
    try:
        done = subprocess.run(
            [command, *map(str, args)], stdin=subprocess.DEVNULL, capture_output=True, text=True
        )
    except OSError as error:
        common.fail(f"{command}: {error.strerror}; `--mcpb` names the command")
    if done.returncode != 0:
        common.fail(f"mcpb {args[0]}: {(done.stderr or done.stdout).strip()}")


def main():
    parser = common.arguments(__doc__.split("\n")[0])
    parser.add_argument("--mcpb", default="mcpb", metavar="FILE", help="the `mcpb` command")
    options = parser.parse_args()
    target = common.checked(options)
    npm, version = common.TARGETS[target]["npm"], common.product()["version"]
    path = options.out / f"{common.NAME}-{version}-{npm['os']}-{npm['cpu']}.mcpb"
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        (folder / "server").mkdir()
        shutil.copy(options.binary, folder / "server/ack-memory")
        (folder / "server/ack-memory").chmod(0o755)
        for licence in common.licence_files(options.notices):
            shutil.copy(licence, folder)
        value = manifest(target, options.repository)
        (folder / "manifest.json").write_text(json.dumps(value, indent=2) + "\n")
        mcpb(options.mcpb, "validate", folder / "manifest.json")
        mcpb(options.mcpb, "pack", folder, path.resolve())
    print(path)


main()
