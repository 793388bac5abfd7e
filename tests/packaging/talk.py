#!/usr/bin/env python3
"""Talks to an installed server over standard input and output: `talk.py COMMAND...`.

Fails unless it answers `initialize` and `tools/list`, offers the tools that the bundle's manifest
names, and ends when its input does. With `--signal NAME` before the command, that signal ends it
instead, and the exit status says so.
"""

import json
import queue
import signal
import subprocess
import sys
import threading
from pathlib import Path

MANIFEST = Path(__file__).resolve().parents[2] / "packaging/manifest.json"
SECONDS = 15


class Server:
    def __init__(self, command):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.lines = queue.Queue()
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        for line in self.process.stdout:
            self.lines.put(line)

    def send(self, message):
        line = json.dumps({"jsonrpc": "2.0", **message}) + "\n"
        self.process.stdin.write(line.encode())
        self.process.stdin.flush()

    def ask(self, method, params):
        self.send({"id": method, "method": method, "params": params})
        try:
            answer = json.loads(self.lines.get(timeout=SECONDS))
        except queue.Empty:
            self.process.kill()
            sys.exit(f"no answer to {method} within {SECONDS} s")
        if answer.get("id") != method or "result" not in answer:
            sys.exit(f"{method} is answered by {json.dumps(answer)[:500]}")
        return answer["result"]

    def status(self):
        """The exit status as a shell has it: 128 and the number after a signal."""
        try:
            status = self.process.wait(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            sys.exit(f"still running {SECONDS} s after it should have ended")
        # Whatever it started has standard output too.
        self.reader.join(timeout=SECONDS)
        if self.reader.is_alive():
            sys.exit("it has ended, and what it started has not")
        return 128 - status if status < 0 else status


def main():
    command = sys.argv[1:]
    ending = None
    if command[:1] == ["--signal"]:
        ending = signal.Signals[command[1]]
        command = command[2:]
    server = Server(command)
    client = {"name": "packaging", "version": "0"}
    params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client}
    started = server.ask("initialize", params)
    if started["serverInfo"]["name"] != "ack-memory":
        sys.exit(f"another server answers: {started['serverInfo']}")
    server.send({"method": "notifications/initialized"})
    offered = sorted(tool["name"] for tool in server.ask("tools/list", {})["tools"])
    named = sorted(tool["name"] for tool in json.loads(MANIFEST.read_text())["tools"])
    if offered != named:
        sys.exit(f"the server offers {offered}, packaging/manifest.json names {named}")
    if ending is None:
        server.process.stdin.close()
        expected = 0
    else:
        server.process.send_signal(ending)
        expected = 128 + ending
    status = server.status()
    if status != expected:
        sys.exit(f"it ends with {status} instead of {expected}")


main()
