"""A fake of the two services of Vertex AI that an upload to a TensorBoard calls, over gRPC with TLS on this machine.

It runs in the Python of the uploader: `python vertex_tensorboard.py FOLDER`. In the folder are then `certificate.pem`,
`credentials.json`, `port`, and `calls.jsonl`: a line a call with its method, and of written data the points of each
series.
"""

from __future__ import annotations

import datetime
import itertools
import json
import signal
import sys
import threading
from collections.abc import Callable
from concurrent import futures
from pathlib import Path
from typing import Any

import grpc
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from google.cloud.aiplatform_v1 import types
from google.longrunning import operations_pb2
from google.protobuf.any_pb2 import Any as AnyMessage

PACKAGE = "google.cloud.aiplatform.v1"
LOCATION = "projects/my-project/locations/us-central1"
TENSORBOARD = f"{LOCATION}/tensorboards/4711"
DISPLAY_NAME = "tpu-tensorboard"

# Resource -> the collection that its name is in. A time series gets its id from the server, the others from the caller.
COLLECTIONS = {
    "TensorboardExperiment": "experiments",
    "TensorboardRun": "runs",
    "TensorboardTimeSeries": "timeSeries",
    "MetadataStore": "metadataStores",
    "Context": "contexts",
    "Artifact": "artifacts",
    "Execution": "executions",
}


class Refused(Exception):
    """Ends a call with a status."""

    def __init__(self, code: grpc.StatusCode, text: str) -> None:
        super().__init__(text)
        self.code = code


class Vertex:
    """The resources, and what each method does with them. A region without a metadata store, with one TensorBoard."""

    def __init__(self) -> None:
        self.resources: dict[str, Any] = {
            TENSORBOARD: types.Tensorboard(
                name=TENSORBOARD, display_name=DISPLAY_NAME, blob_storage_path_prefix="bucket-of-google/prefix"
            )
        }
        self._ids = itertools.count(1)
        self._operation: operations_pb2.Operation | None = None

    def method(self, name: str) -> Callable[[Any], Any] | None:
        """What a method of the API does; None if the fake has none of that name."""
        if name == "GetOperation":
            return self._GetOperation
        for verb in ("BatchCreate", "Create", "Get", "List", "Update"):
            if name.startswith(verb):
                return lambda request: getattr(self, f"_{verb.lower()}")(name.removeprefix(verb), request)
        return getattr(self, f"_{name}", None)

    def _get(self, resource: str, request: Any) -> Any:
        if request.name not in self.resources:
            raise Refused(grpc.StatusCode.NOT_FOUND, f"{resource} {request.name} is not found")
        return self.resources[request.name]

    def _create(self, resource: str, request: Any) -> Any:
        field = _snake(resource)
        message = getattr(request, field)
        collection = f"{request.parent}/{COLLECTIONS[resource]}"
        siblings = [each for name, each in self.resources.items() if name.rpartition("/")[0] == collection]
        if resource == "TensorboardTimeSeries":
            if any(each.display_name == message.display_name for each in siblings):
                raise Refused(grpc.StatusCode.INVALID_ARGUMENT, f"{message.display_name} already exists")
            number = str(next(self._ids))
        else:
            number = getattr(request, f"{field}_id")
        name = f"{collection}/{number}"
        if name in self.resources:
            raise Refused(grpc.StatusCode.ALREADY_EXISTS, f"{name} already exists")
        message.name = name
        self.resources[name] = message
        if resource != "MetadataStore":
            return message
        packed = AnyMessage()
        packed.Pack(types.MetadataStore.pb(message))
        name = f"{LOCATION}/operations/{next(self._ids)}"
        self._operation = operations_pb2.Operation(name=name, done=True, response=packed)
        return operations_pb2.Operation(name=name)

    def _batchcreate(self, plural: str, request: Any) -> Any:
        resource = plural if plural in COLLECTIONS else plural.removesuffix("s")
        created = [self._create(resource, each) for each in request.requests]
        return getattr(types, f"BatchCreate{plural}Response")(**{_snake(plural): created})

    def _list(self, plural: str, request: Any) -> Any:
        resource = plural if plural in COLLECTIONS else plural.removesuffix("s")
        collection = "tensorboards" if resource == "Tensorboard" else COLLECTIONS[resource]
        found = [
            each
            for name, each in self.resources.items()
            if name.rpartition("/")[0] == f"{request.parent}/{collection}"
            and ("display_name" not in request.filter or json.dumps(each.display_name) in request.filter)
        ]
        return getattr(types, f"List{plural}Response")(**{_snake(plural): found})

    def _update(self, resource: str, request: Any) -> Any:
        message = getattr(request, _snake(resource))
        self.resources[message.name] = message
        return message

    def _GetOperation(self, request: Any) -> Any:
        return self._operation

    def _AddContextChildren(self, request: Any) -> Any:
        return types.AddContextChildrenResponse()

    def _AddContextArtifactsAndExecutions(self, request: Any) -> Any:
        return types.AddContextArtifactsAndExecutionsResponse()

    def _WriteTensorboardExperimentData(self, request: Any) -> Any:
        return types.WriteTensorboardExperimentDataResponse()

    def _WriteTensorboardRunData(self, request: Any) -> Any:
        return types.WriteTensorboardRunDataResponse()

    def points(self, request: Any) -> list[list[Any]]:
        """[the series' display name, step] of each point that a request writes."""
        requests = getattr(request, "write_run_data_requests", None) or [request]
        return [
            [
                self.resources[f"{each.tensorboard_run}/timeSeries/{data.tensorboard_time_series_id}"].display_name,
                value.step,
            ]
            for each in requests
            for data in each.time_series_data
            for value in data.values
        ]


class Service(grpc.GenericRpcHandler):
    """Answers every method of both services, one call at a time, and writes it down."""

    def __init__(self, vertex: Vertex, calls: Path) -> None:
        self._vertex = vertex
        self._calls = calls
        self._lock = threading.Lock()

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler | None:
        service, _, name = handler_call_details.method.removeprefix("/").partition("/")

        def answer(body: bytes, context: grpc.ServicerContext) -> bytes:
            method = self._vertex.method(name)
            with self._lock:
                line: dict[str, Any] = {"method": f"{service.removeprefix(PACKAGE + '.')}.{name}"}
                try:
                    if method is None:
                        raise Refused(grpc.StatusCode.UNIMPLEMENTED, f"{handler_call_details.method} is not faked")
                    if service == "google.longrunning.Operations":
                        request = operations_pb2.GetOperationRequest.FromString(body)
                    else:
                        request = getattr(types, f"{name}Request").deserialize(body)
                    if name.startswith("Write"):
                        line["points"] = self._vertex.points(request)
                    response = method(request)
                except Refused as refused:
                    line["refused"] = str(refused)
                    context.abort(refused.code, str(refused))
                finally:
                    with self._calls.open("a") as file:
                        file.write(json.dumps(line) + "\n")
            if isinstance(response, operations_pb2.Operation):
                return response.SerializeToString()
            return type(response).serialize(response)

        return grpc.unary_unary_rpc_method_handler(answer)


def _snake(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name).lstrip("_")


def _certificate() -> tuple[bytes, bytes]:
    """The private key and the certificate of localhost, as PEM."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)  # type: ignore[attr-defined]
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(minutes=5))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return private, certificate.public_bytes(pem)


def _credentials() -> dict[str, str]:
    """The key file of a service account: with one, the client signs its tokens itself and asks no other server."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return {
        "type": "service_account",
        "client_email": "training@my-project.iam.gserviceaccount.com",
        "private_key": private.decode(),
        "private_key_id": "1",
        "token_uri": "https://localhost/token",
    }


def main(folder: Path) -> None:
    """Serves until SIGTERM."""
    key, certificate = _certificate()
    (folder / "credentials.json").write_text(json.dumps(_credentials()))
    (folder / "certificate.pem").write_bytes(certificate)
    (folder / "calls.jsonl").touch()
    server = grpc.server(futures.ThreadPoolExecutor(4))
    server.add_generic_rpc_handlers([Service(Vertex(), folder / "calls.jsonl")])
    port = server.add_secure_port("localhost:0", grpc.ssl_server_credentials([(key, certificate)]))
    server.start()
    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    (folder / "port.part").write_text(str(port))
    (folder / "port.part").rename(folder / "port")
    ended.wait()
    server.stop(None)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
