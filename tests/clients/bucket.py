"""A bucket at somebody else's S3 server, moto, and what ack-memory relies on there.

    bucket.py conditions

The faults `conditions-ignored` and `head-kept` (FAULT) are those of moto_server.py.
"""

import http.client
import os
import subprocess
import sys
import threading
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

HERE = Path(__file__).parent
BUCKET = "memories"
# moto asks who it is, and believes it.
SIGNED = "AWS4-HMAC-SHA256 Credential=anna/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=0"
FAULT = os.environ.get("FAULT", "")
FAULTS = {"conditions-ignored": ["--ignore-conditions"], "head-kept": ["--keep-head"]}


@contextmanager
def moto(*arguments):
    """A running server; its address, which is gone afterwards."""
    command = [sys.executable, "-W", "ignore", HERE / "moto_server.py", *arguments, *FAULTS.get(FAULT, [])]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        address = server.stdout.readline().strip()
        holds("the server starts", address.startswith("http://127.0.0.1:"), address)
        yield address
    finally:
        server.terminate()
        server.wait(10)


class Server:
    """A server with an empty bucket, as a publisher and a reader of ack-memory name it."""

    def __init__(self, address, bucket, credentials, everything, path=""):
        self.address = address
        self.bucket = bucket
        self.credentials = credentials
        # Gives the keys, and the bytes of all objects.
        self.everything = everything
        self.path = path

    def endpoint(self, address=None):
        """The endpoint, there or at the end of a line to it."""
        return (address or self.address) + self.path


@contextmanager
def moto_server(*arguments):
    with moto(*arguments) as address:

        def everything():
            keys = named(ask(address, "GET", "?list-type=2")[2], "Key")
            return keys, b"".join(ask(address, "GET", key)[2] for key in keys)

        credentials = {"AWS_ACCESS_KEY_ID": "anna", "AWS_SECRET_ACCESS_KEY": "secret"}
        yield Server(address, f"s3://{BUCKET}/team", credentials, everything)


def named(xml, element):
    """The texts of all elements of a name."""
    return [part.split("<")[0] for part in xml.decode().split(f"<{element}>")[1:]]


def same(what, found, expected):
    if found != expected:
        raise AssertionError(f"{what}: {found!r} instead of {expected!r}")


def holds(what, condition, found):
    if not condition:
        raise AssertionError(f"{what}: {str(found)[:600]}")


def ask(address, method, key, body=None, **conditions):
    """The status, the headers and the body of an answer; conditions are headers."""
    connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=20)
    headers = {name.replace("_", "-"): value for name, value in conditions.items()} | {"Authorization": SIGNED}
    try:
        connection.request(method, f"/{BUCKET}/{key}", body, headers)
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read()
    finally:
        connection.close()


def conditions(address):
    """A key is created once, and an object is replaced by who has seen it as it is."""

    def put(key, text, **conditions):
        status, headers, _ = ask(address, "PUT", key, text.encode(), **conditions)
        return status, headers["ETag"]

    def text(key):
        return ask(address, "GET", key)[2].decode()

    status, first = put("HEAD.json", "1", If_None_Match="*")
    same("a new key is created", status, 200)
    same("a key that is there is not created again (412)", put("HEAD.json", "lost", If_None_Match="*")[0], 412)
    same("what was there stays", text("HEAD.json"), "1")
    status, second = put("HEAD.json", "2", If_Match=first)
    same("an object as it was seen is replaced", status, 200)
    holds("the ETag tells the new object from the old one", second not in (None, first), second)
    same("an object that has changed is not replaced (412)", put("HEAD.json", "lost", If_Match=first)[0], 412)
    same("what has changed stays", text("HEAD.json"), "2")
    same("a missing key is not replaced (404)", put("none", "lost", If_Match=first)[0], 404)
    same("it is still missing", ask(address, "GET", "none")[0], 404)

    statuses = []
    writers = [threading.Thread(target=lambda: statuses.append(put("HEAD.json", "3", If_Match=second)[0])) for _ in range(8)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    same("of eight writers at once one wins", sorted(statuses), [200] + 7 * [412])

    status, headers, part = ask(address, "GET", "HEAD.json", Range="bytes=0-0")
    same("a range is answered with its bytes", (status, headers["Content-Range"], part), (206, "bytes 0-0/1", b"3"))


if __name__ == "__main__":
    with moto() as address:
        {"conditions": conditions}[sys.argv[1]](address)
