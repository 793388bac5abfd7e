"""Two people, one repository, one bucket at moto or Azurite, and three machines, which are three homes.

    team.py story|azure|refused

Ana captures a memory. Ben reviews it on her branch, merges it and publishes the team's scope. Cleo, who has no clone, finds it,
with the network cut too. Ana withdraws it; once that is merged and published it is gone for Cleo within `max_age`. And nothing
is published to a server that ignores conditions. The binary is BINARY; the fault `conditions-kept` has that server keep them.
"""

import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from urllib.parse import urlsplit

import azurite
from bucket import FAULT, Server, holds, moto_server, same

QUESTION = "container dies with exit code 137"
MEMORY = {
    "id": "ci-137",
    "type": "gotcha",
    "title": "Exit code 137 in CI is the out-of-memory killer",
    "facts": ["137 = 128 + SIGKILL"],
    "narrative": "The linker needs more than the container has. Link with two jobs, as qxzopal does.",
}
# Never approved.
WAITING = {"id": "idea-1", "type": "discovery", "title": "Perhaps exit code 137 comes from the qxzquartz cache", "facts": []}
MAX_AGE = 1.0


class Line:
    """A line to a server, which can be cut and frozen."""

    def __init__(self, address):
        self.server = urlsplit(address)
        self.open_connections = []
        self.running = threading.Event()
        self.running.set()
        self.listener = None
        self.port = 0
        self.mend()

    @property
    def address(self):
        return f"http://127.0.0.1:{self.port}"

    def mend(self):
        self.listener = socket.create_server(("127.0.0.1", self.port))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, args=[self.listener], daemon=True).start()

    def cut(self):
        # Closing alone does not end an `accept` that waits.
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for one in self.open_connections:
            one.close()
        self.open_connections.clear()

    def accept(self, listener):
        while True:
            try:
                near, _ = listener.accept()
            except OSError:
                return
            far = socket.create_connection((self.server.hostname, self.server.port))
            self.open_connections += [near, far]
            for ends in ((near, far), (far, near)):
                threading.Thread(target=self.copy, args=ends, daemon=True).start()

    def copy(self, source, target):
        try:
            while data := source.recv(65536):
                self.running.wait()
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)
        except OSError:
            pass


class Person:
    """Somebody with a home, and perhaps a clone."""

    def __init__(self, folder, name, server, remote=None):
        self.home = folder / name
        self.here = self.home
        (self.home / ".ack-mem").mkdir(parents=True)
        # Decisions are made at a terminal, or by whoever has the owner's token.
        (self.home / ".ack-mem/curator-token").write_text("a-token-of-the-owner\n")
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "USER": name,
            "ACK_MEM_CURATOR_TOKEN": "a-token-of-the-owner",
            "GIT_CONFIG_NOSYSTEM": "1",
        } | server.credentials
        if remote:
            self.git("clone", "-q", str(remote), "project")
            self.here = self.home / "project"
            self.git("config", "user.name", name)
            self.git("config", "user.email", f"{name}@example.org")

    def run(self, *command):
        done = subprocess.run(command, cwd=self.here, env=self.environment, capture_output=True, text=True, timeout=60)
        return done.returncode, done.stdout, done.stderr

    def does(self, *command):
        outcome, out, err = self.run(*command)
        holds(f"`{' '.join(map(str, command))}` works", outcome == 0, f"{out}\n{err}")
        return out

    def git(self, *arguments):
        return self.does("git", *arguments)

    def memory(self, *arguments):
        return self.does(os.environ["BINARY"], *arguments)

    def finds(self, *arguments):
        """The ids of what a question finds, and the kinds of the notes."""
        answer = json.loads(self.memory("query", QUESTION, "--scope", "team", "--json", *arguments))
        return [found["id"] for found in answer["results"]], [note["kind"] for note in answer.get("notes", [])]


def capture(ana):
    """A memory of Ana's own, approved by her alone, on a branch."""
    lines = [json.dumps(memory) for memory in (MEMORY, WAITING)]
    (ana.home / "lesson.jsonl").write_text("\n".join(lines) + "\n")
    ana.memory("import", str(ana.home / "lesson.jsonl"), "--scope", "mine")
    ana.memory("approve", MEMORY["id"], "--scope", "mine")
    ana.git("switch", "-q", "-c", "memory-mine")
    share(ana, "why CI dies with 137")


def share(ana, why):
    ana.memory("publish", "mine", "--to-folder", "docs/memory", "--yes")
    ana.git("add", "--all", "docs/memory")
    ana.git("commit", "-q", "-m", f"memory: {why}")
    ana.git("push", "-q", "-u", "origin", "HEAD")


def review(ben):
    """Ben looks at the branch as it is, and then merges it."""
    ben.git("fetch", "-q")
    ben.git("checkout", "-q", "--detach", "origin/memory-mine")
    holds("the check has nothing to say", "0 errors, 0 warnings" in ben.memory("check", "docs/memory"), "")
    ben.memory("scopes", "add", "team", "--store", "docs/memory", "--ref", "origin/main", "--yes")
    same("what is on a branch is not served", ben.finds()[0], [])
    same("it waits for review", ben.finds("--status", "staging")[0], [MEMORY["id"]])
    merge(ben)
    same("what is merged is served", ben.finds()[0], [MEMORY["id"]])


def merge(ben):
    ben.git("fetch", "-q")
    ben.git("checkout", "-q", "-B", "main", "origin/main")
    ben.git("merge", "-q", "--no-ff", "-m", "merge memory-mine", "origin/memory-mine")
    ben.git("push", "-q", "origin", "main")


def publish(ben, server):
    said = json.loads(ben.memory("publish", "team", "--to", server.bucket, "--endpoint", server.endpoint(), "--yes", "--json"))
    same("it was published", said["written"], True)
    return said


def subscribe(cleo, server, line):
    scope = cleo.home / ".ack-mem/scopes/team"
    scope.mkdir(parents=True)
    (scope / "scope.toml").write_text(
        f'table = "{server.bucket}"\n\n[remote]\nendpoint = "{server.endpoint(line.address)}"\n'
        f'max_age = "{MAX_AGE:.0f}s"\noffline = "7d"\n'
    )


def offline(cleo, line):
    """The network is cut, then it hangs."""
    line.cut()
    time.sleep(MAX_AGE + 0.2)
    found, notes = cleo.finds()
    same("it is found with the network cut", found, [MEMORY["id"]])
    holds("the answer says that it may be out of date", "remote_stale" in notes, notes)
    line.mend()
    line.running.clear()
    began = time.monotonic()
    same("it is found where the server hangs", cleo.finds()[0], [MEMORY["id"]])
    took = time.monotonic() - began
    holds("a server that hangs is not waited for long", took < 5, f"{took:.1f} s")
    line.running.set()


def story(folder, server: Server):
    line = Line(server.address)
    remote = folder / "remote.git"
    subprocess.run(["git", "init", "-q", "--bare", "-b", "main", str(remote)], check=True)
    ana = Person(folder, "ana", server, remote)
    ana.git("switch", "-q", "-c", "main")
    ana.git("commit", "-q", "--allow-empty", "-m", "first")
    ana.git("push", "-q", "origin", "HEAD:main")
    ben = Person(folder, "ben", server, remote)
    cleo = Person(folder, "cleo", server)

    capture(ana)
    review(ben)
    same("one memory is added", [item["id"] for item in publish(ben, server)["added"]], [MEMORY["id"]])
    keys, data = server.everything()
    holds("the bucket holds a head", "team/HEAD.json" in keys, keys)
    # The texts are compressed, the words of the index are not.
    holds("what is approved is in the bucket", b"qxzopal" in data, keys)
    holds("what waits for review is not in the bucket", b"qxzquartz" not in data, keys)
    holds("probes are removed", not any("probe" in key for key in keys), keys)

    subscribe(cleo, server, line)
    same("it is found by whoever has no clone", cleo.finds()[0], [MEMORY["id"]])
    offline(cleo, line)

    ana.memory("reject", MEMORY["id"], "--scope", "mine")
    share(ana, "no longer true")
    merge(ben)
    same("what is withdrawn is not served", ben.finds()[0], [])
    same("one memory is removed", [item["id"] for item in publish(ben, server)["withdrawn"]], [MEMORY["id"]])
    time.sleep(MAX_AGE + 0.2)
    # A server that failed is left alone for some seconds.
    until = time.monotonic() + 4
    while (found := cleo.finds()[0]) and time.monotonic() < until:
        time.sleep(0.2)
    same("it is gone for everybody", found, [])
    line.cut()
    same("it stays gone with the network cut", cleo.finds()[0], [])


def refused(folder, server: Server):
    """Nothing is published to a server that ignores conditions."""
    ana = Person(folder, "ana", server)
    (ana.home / "lesson.jsonl").write_text(json.dumps(MEMORY) + "\n")
    ana.memory("import", str(ana.home / "lesson.jsonl"), "--scope", "mine")
    ana.memory("approve", MEMORY["id"], "--scope", "mine")
    outcome, out, err = ana.run(os.environ["BINARY"], "publish", "mine", "--to", server.bucket, "--endpoint", server.endpoint(), "--yes")
    same("publishing is refused", outcome != 0, True)
    holds("it says why", "cannot be published to safely" in err, f"{out}\n{err}")
    holds("there is no head", not any("HEAD" in key for key in server.everything()[0]), "HEAD.json")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        match sys.argv[1]:
            case "story":
                with moto_server() as server:
                    story(Path(folder), server)
            case "azure":
                with azurite.server() as server:
                    story(Path(folder), server)
            case "refused":
                with moto_server(*([] if FAULT == "conditions-kept" else ["--ignore-conditions"])) as server:
                    refused(Path(folder), server)
