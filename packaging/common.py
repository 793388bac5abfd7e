"""What every packaging script needs: the product's metadata, the targets, the binary.

Only the standard library, Python 3.9 or newer.
"""

import argparse
import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TARGETS = json.loads((ROOT / "packaging/targets.json").read_text())
NAME = "ack-memory"


def fail(message):
    """Ends the script with one line on standard error."""
    sys.exit(f"{Path(sys.argv[0]).name}: {message}")


def _section(text, header):
    """The plain `key = "value"` lines of one TOML table."""
    body = re.search(rf"^\[{re.escape(header)}\]$(.*?)(?=^\[|\Z)", text, re.M | re.S)
    pairs = re.findall(r'^([\w.-]+)\s*=\s*"([^"]*)"', body.group(1) if body else "", re.M)
    return dict(pairs)


def product():
    """Version, description and licence, as Cargo.toml has them."""
    text = (ROOT / "Cargo.toml").read_text()
    facts = {**_section(text, "workspace.package"), **_section(text, "package")}
    missing = [key for key in ("version", "description") if key not in facts]
    if missing:
        fail(f"Cargo.toml has no {' and no '.join(missing)}")
    return facts


def python_version(version):
    """A version in Python's spelling: `1.2.0-rc.1` is `1.2.0rc1`."""
    found = re.fullmatch(r"(\d+\.\d+\.\d+)(?:-(alpha|beta|rc)\.?(\d+))?", version)
    if found is None:
        fail(f"no spelling for Python is known of the version {version}")
    release, stage, number = found.groups()
    if stage is None:
        return release
    short = {"alpha": "a", "beta": "b", "rc": "rc"}[stage]
    return f"{release}{short}{number}"


def licence_files(notices=None):
    """Our own licences, and the file with those of the linked crates."""
    files = sorted(ROOT.glob("LICENSE*"))
    return [*files, notices] if notices else files


def arguments(description):
    """A parser with the arguments that the scripts share."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("binary", type=Path, metavar="BINARY")
    parser.add_argument(
        "--target",
        choices=sorted(TARGETS),
        help="what BINARY is built for (default: what its header says)",
    )
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="output folder")
    parser.add_argument("--repository", metavar="URL", help="web address of the repository")
    parser.add_argument(
        "--notices", type=Path, metavar="FILE", help="what notices.py made, to be put in"
    )
    return parser


def target_of(binary):
    """The target that the header of an executable names, or None."""
    with open(binary, "rb") as file:
        head = file.read(20)
    if head[:6] == b"\x7fELF\x02\x01":
        machine = int.from_bytes(head[18:20], "little")
        return {
            62: "x86_64-unknown-linux-gnu",
            183: "aarch64-unknown-linux-gnu",
        }.get(machine)
    if head[:4] == b"\xcf\xfa\xed\xfe":
        machine = int.from_bytes(head[4:8], "little")
        return {
            0x01000007: "x86_64-apple-darwin",
            0x0100000C: "aarch64-apple-darwin",
        }.get(machine)
    return None


def checked(options):
    """The target of BINARY, after a check that it is what it claims to be."""
    if not options.binary.is_file():
        fail(f"no such file: {options.binary}")
    found = target_of(options.binary)
    if found is None:
        fail(f"{options.binary} is no executable of a known target: {', '.join(sorted(TARGETS))}")
    if options.target not in (None, found):
        fail(f"{options.binary} is built for {found}, not for {options.target}")
    version = product()["version"]
    said = run(options.binary, "--version")
    if said is not None and said.split() != [NAME, version]:
        first = said.split("\n")[0]
        fail(f"`{options.binary} --version` is `{first}`, expected `{NAME} {version}`")
    options.out.mkdir(parents=True, exist_ok=True)
    return found


def run(binary, *args):
    """What the binary prints, or None if it fails or cannot run on this machine."""
    try:
        done = subprocess.run(
            [str(Path(binary).resolve()), *args],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None
