"""Azurite, Microsoft's stand-in for Azure Blob Storage, on a free port of 127.0.0.1 with an empty container `memories`. INTO is
where it is installed.
"""

import base64
import hashlib
import hmac
import http.client
import os
import subprocess
from contextlib import contextmanager
from email.utils import formatdate
from urllib.parse import urlsplit

from bucket import BUCKET, Server, holds, named, same

# The account that every Azurite has, with its well-known key.
ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
VERSION = "2021-08-06"


@contextmanager
def server():
    program = f"{os.environ['INTO']}/azurite/node_modules/.bin/azurite-blob"
    options = ["--inMemoryPersistence", "--skipApiVersionCheck", "--disableTelemetry"]
    command = [program, "--blobHost", "127.0.0.1", "--blobPort", "0", *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        said = ""
        while "listens on" not in said:
            said = process.stdout.readline()
            holds("Azurite starts", said, process.poll())
        address = said.split()[-1]
        same("the container is made", ask(address, "PUT", BUCKET, {"restype": "container"})[0], 201)

        def everything():
            listed = ask(address, "GET", BUCKET, {"comp": "list", "restype": "container"})[1]
            keys = named(listed, "Name")
            return keys, b"".join(ask(address, "GET", f"{BUCKET}/{key}", {})[1] for key in keys)

        credentials = {"AZURE_STORAGE_ACCOUNT_NAME": ACCOUNT, "AZURE_STORAGE_ACCOUNT_KEY": KEY}
        yield Server(address, f"az://{BUCKET}/team", credentials, everything, f"/{ACCOUNT}")
    finally:
        process.terminate()
        process.wait(10)


def ask(address, method, name, query):
    """The status and the body of an answer to a request that is signed with the key (Shared Key)."""
    path = f"/{ACCOUNT}/{name}"
    headers = {"x-ms-date": formatdate(usegmt=True), "x-ms-version": VERSION}
    signed = [method, *11 * [""], *(f"{name}:{value}" for name, value in headers.items())]
    signed += [f"/{ACCOUNT}{path}", *(f"{name}:{value}" for name, value in sorted(query.items()))]
    digest = hmac.new(base64.b64decode(KEY), "\n".join(signed).encode(), hashlib.sha256).digest()
    headers["Authorization"] = f"SharedKey {ACCOUNT}:{base64.b64encode(digest).decode()}"
    connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=20)
    try:
        words = "&".join(f"{name}={value}" for name, value in query.items())
        connection.request(method, f"{path}?{words}" if words else path, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()
