#!/usr/bin/env python3
"""Fills in the entry for the MCP registry: the packages by which clients can start the server.

    packaging/server_json.py --repository URL --out dist

The npm and PyPI packages choose the binary for the platform themselves. Bundles are not named: an
entry cannot say which processor a bundle is for.
"""

import argparse
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import common


def package(registry, runtime, version):
    return {
        "registryType": registry,
        "identifier": common.NAME,
        "version": version,
        "runtimeHint": runtime,
        "transport": {"type": "stdio"},
        "packageArguments": [{"type": "positional", "value": "serve"}],
        "environmentVariables": [
            {
                "name": "ACK_MEM_PATH",
                "description": "The folder that has scopes/ and config.toml; ~/.ack-mem without it",
                "format": "filepath",
                "isRequired": False,
            }
        ],
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="output folder")
    parser.add_argument("--repository", required=True, metavar="URL")
    options = parser.parse_args()
    version = common.product()["version"]
    entry = json.loads((common.ROOT / "packaging/server.json").read_text())
    entry["version"] = version
    entry["repository"] = {"url": options.repository, "source": "github"}
    entry["packages"] = [
        package("npm", "npx", version),
        package("pypi", "uvx", common.python_version(version)),
    ]
    options.out.mkdir(parents=True, exist_ok=True)
    path = options.out / "server.json"
    path.write_text(json.dumps(entry, indent=2) + "\n")
    print(path)


main()
