"""moto's S3 on a free port of 127.0.0.1, with an empty bucket `memories`: prints its address and answers until it is stopped.

    moto_server.py [--ignore-conditions] [--keep-head]

Requests are answered one at a time, so that a write with a condition is one step, as it is at Amazon's. With
--ignore-conditions every write happens, whatever its condition. With --keep-head the first HEAD.json stays, and later ones are
acknowledged.
"""

import sys
import threading

import boto3
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import WSGIRequestHandler, make_server

IGNORE_CONDITIONS = "--ignore-conditions" in sys.argv[1:]
KEEP_HEAD = "--keep-head" in sys.argv[1:]
heads = []
moto = DomainDispatcherApplication(create_backend_app)
one_at_a_time = threading.Lock()


def application(environ, start_response):
    if IGNORE_CONDITIONS and environ["REQUEST_METHOD"] in ("PUT", "POST"):
        environ.pop("HTTP_IF_MATCH", None)
        environ.pop("HTTP_IF_NONE_MATCH", None)
    if KEEP_HEAD and environ["REQUEST_METHOD"] == "PUT" and environ["PATH_INFO"].endswith("/HEAD.json"):
        heads.append(environ["PATH_INFO"])
        if len(heads) > 1:
            environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"]))
            start_response("200 OK", [("ETag", '"0"'), ("Content-Length", "0")])
            return [b""]
    with one_at_a_time:
        return list(moto(environ, start_response))


class Quiet(WSGIRequestHandler):
    protocol_version = "HTTP/1.1"

    def log(self, kind, message, *arguments):
        if kind == "error":
            super().log(kind, message, *arguments)


server = make_server("127.0.0.1", 0, application, threaded=True, request_handler=Quiet)
address = f"http://127.0.0.1:{server.port}"
threading.Thread(target=server.serve_forever, daemon=True).start()
client = boto3.client("s3", endpoint_url=address, region_name="us-east-1", aws_access_key_id="anna", aws_secret_access_key="secret")
client.create_bucket(Bucket="memories")
print(address, flush=True)
threading.Event().wait()
