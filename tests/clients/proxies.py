"""The examples of docs/http.md for a reverse proxy, tried with the real program: a client asks over TLS, by the name in the
example, with a certificate that was made for the test.

    proxies.py caddy|nginx
"""

import http.client
import json
import os
import re
import socket
import ssl
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

DOCS = Path(__file__).parent / "../../docs/http.md"
NAME = "memory.example.com"
TOKEN = os.environ["ACK_MEM_TOKEN"]
HOME = Path(os.environ["HOME"])


def holds(what, condition, found):
    if not condition:
        raise AssertionError(f"{what}: {str(found)[:600]}")


def example(begin):
    """The example that begins with these words."""
    blocks = re.findall(r"```\w*\n(.*?)```", DOCS.read_text(), re.DOTALL)
    return next(block for block in blocks if block.startswith(begin))


def changed(text, old, new):
    holds("the example has what the test replaces", old in text, old)
    return text.replace(old, new)


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def certificate():
    key, certificate = HOME / "key.pem", HOME / "certificate.pem"
    words = f"openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN={NAME}"
    command = [*words.split(), "-addext", f"subjectAltName=DNS:{NAME}", "-keyout", key, "-out", certificate]
    subprocess.run(command, check=True, capture_output=True)
    return key, certificate


def caddy(server, port, key, certificate):
    site = changed(example(f"{NAME} {{"), f"{NAME} {{", f"{NAME}:{port} {{\n    tls {certificate} {key}")
    site = changed(site, "127.0.0.1:7767", server)
    config = HOME / "Caddyfile"
    config.write_text(f"{{\n    admin off\n    auto_https disable_redirects\n    http_port {free_port()}\n}}\n{site}")
    return ["caddy", "run", "--adapter", "caddyfile", "--config", config]


def nginx(server, port, key, certificate):
    site = changed(example("server {"), "listen 443 ssl", f"listen 127.0.0.1:{port} ssl")
    site = changed(site, f"/etc/ssl/{NAME}.pem", str(certificate))
    site = changed(site, f"/etc/ssl/{NAME}.key", str(key))
    site = changed(site, "127.0.0.1:7767", server)
    kinds = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
    temporary = "".join(f"{kind}_temp_path {HOME}/{kind};\n" for kind in kinds)
    log = HOME / "nginx.log"
    config = HOME / "nginx.conf"
    config.write_text(
        f"daemon off;\nmaster_process off;\npid {HOME}/nginx.pid;\nerror_log {log};\nevents {{}}\n"
        f"http {{\naccess_log off;\n{temporary}{site}}}\n"
    )
    return ["nginx", "-c", config, "-e", log, "-p", HOME]


@contextmanager
def running(command, **settings):
    process = subprocess.Popen(command, stderr=subprocess.STDOUT, **settings)
    try:
        yield process
    finally:
        process.terminate()
        process.wait(10)


@contextmanager
def server(*arguments):
    """A server; its host and port."""
    command = [os.environ["BINARY"], "--root", os.environ["ROOT"], "serve", "--http", "127.0.0.1:0", *arguments]
    log = open(HOME / "server.log", "w")
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
    try:
        yield process.stdout.readline().strip().removeprefix("http://").removesuffix("/mcp")
    finally:
        process.terminate()
        process.wait(10)


class Client:
    """A client that finds the name of the example at a port of this machine."""

    def __init__(self, port, certificate):
        self.port = port
        self.tls = ssl.create_default_context(cafile=certificate)
        self.session = None

    def ask(self, path, message=None, token=TOKEN):
        """The status, the headers and the body of an answer."""
        plain = socket.create_connection(("127.0.0.1", self.port), timeout=20)
        connection = http.client.HTTPConnection(NAME)
        connection.sock = self.tls.wrap_socket(plain, server_hostname=NAME)
        headers = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
        if token:
            headers["Authorization"] = f"Bearer {token}"
        if self.session:
            headers["Mcp-Session-Id"] = self.session
        body = json.dumps(message) if message else None
        try:
            connection.request("POST" if message else "GET", path, body, headers)
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read().decode()
        finally:
            connection.close()

    def until_there(self):
        for _ in range(100):
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
                return
            except OSError:
                time.sleep(0.1)
        raise AssertionError("the proxy does not start")

    def call(self, number, method, parameters, token=TOKEN):
        return self.ask("/mcp", {"jsonrpc": "2.0", "id": number, "method": method, "params": parameters}, token)


HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "proxies", "version": "1"}}


def asks(client):
    status, headers, body = client.call(1, "initialize", HELLO)
    holds("the client is let in", status == 200 and "serverInfo" in body, (status, body))
    client.session = headers["Mcp-Session-Id"]
    client.ask("/mcp", {"jsonrpc": "2.0", "method": "notifications/initialized"})
    question = {"name": "query_memories", "arguments": {"query": "container killed exit code 137"}}
    status, _, body = client.call(2, "tools/call", question)
    holds("a question is answered", status == 200 and "OOMKilled" in body, (status, body))
    status, _, body = client.call(3, "tools/call", question, token=None)
    holds("nobody gets in without a token", status == 401 and "OOMKilled" not in body, (status, body))
    status, _, body = client.ask("/health")
    holds("the rest of the server stays inside", "ack-memory" not in body, (status, body))


def refused(client):
    status, _, body = client.call(1, "initialize", HELLO)
    holds("a name that is not allowed is refused", status == 403, (status, body))


def main(proxy):
    key, certificate_file = certificate()
    port = free_port()
    client = Client(port, certificate_file)
    for arguments, check in [(["--allow-host", NAME], asks), ([], refused)]:
        with server(*arguments) as address:
            command = {"caddy": caddy, "nginx": nginx}[proxy](address, port, key, certificate_file)
            with open(HOME / "proxy.log", "w") as log, running(command, stdout=log):
                client.until_there()
                client.session = None
                check(client)


main(*sys.argv[1:])
