"""Uploads the event files of a run to a Vertex AI TensorBoard, where the run is an experiment of its own.

Without --once it uploads what is written until SIGTERM, then what is left, and ends.
"""

from __future__ import annotations

import argparse
import signal
import sys
import threading

import google.auth.exceptions
import tensorflow as tf
from google.api_core.exceptions import GoogleAPICallError
from google.cloud import aiplatform
from google.cloud.aiplatform.tensorboard import uploader, uploader_utils
from google.cloud.aiplatform.utils import TensorboardClientWithOverride

# Numbers. Images, graphs and profiles would go into a bucket of Google's, which needs permissions of its own. Texts
# would be a series each: MaxText writes hundreds, one a key, and Vertex AI limits the requests a minute.
PLUGINS = frozenset({"scalars", "histograms", "distributions", "hparams"})

SECONDS_BETWEEN_PASSES = 30.0


class Finished(Exception):
    """The last pass over the files is done."""


class Passes:
    """When the uploader reads the files again: it calls `tick` before each pass.

    A pass that begins after SIGTERM is the last one, because it reads all that was written before.
    """

    def __init__(self, seconds: float, terminated: threading.Event) -> None:
        self._seconds = seconds
        self._terminated = terminated
        self._is_first = True
        self._is_last = False

    def tick(self) -> None:
        """Waits until the next pass is due. Raises Finished after the last one."""
        if self._is_last:
            raise Finished
        self._is_last = self._terminated.wait(0 if self._is_first else self._seconds)
        self._is_first = False


def main(words: list[str]) -> int:
    """0 if all was uploaded, 1 if not."""
    arguments = _arguments(words)
    terminated = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: terminated.set())
    if arguments.once:
        terminated.set()
        if not tf.io.gfile.exists(arguments.folder):
            print(f"{arguments.folder} does not exist; name a run that has written metrics", file=sys.stderr)
            return 1
    try:
        _upload(arguments, terminated)
    except (GoogleAPICallError, google.auth.exceptions.GoogleAuthError, uploader.ExperimentNotFoundError) as error:
        print(f"{arguments.folder} is not uploaded: {error}", file=sys.stderr)
        return 1
    return 0


def _arguments(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Uploads the event files of a run to a Vertex AI TensorBoard.")
    parser.add_argument("--project", required=True)
    parser.add_argument("--region", required=True, help="of the TensorBoard")
    parser.add_argument("--tensorboard", required=True, help="its display name")
    parser.add_argument("--experiment", required=True, help="the name of the run")
    parser.add_argument("--folder", required=True, help="with the event files, in a bucket or local")
    parser.add_argument("--once", action="store_true", help="upload what there is, and end")
    parser.add_argument("--seconds", type=float, default=SECONDS_BETWEEN_PASSES, help="between two passes")
    parser.add_argument("--endpoint", help="of the Vertex AI API, where it is not the region's")
    return parser.parse_args(words)


def _upload(arguments: argparse.Namespace, terminated: threading.Event) -> None:
    aiplatform.init(project=arguments.project, location=arguments.region, api_endpoint=arguments.endpoint)
    client = aiplatform.initializer.global_config.create_client(
        client_class=TensorboardClientWithOverride, location_override=arguments.region
    )
    name = _resource_name(client, arguments)
    bucket, folder = uploader_utils.get_blob_storage_bucket_and_folder(client, name, arguments.project)
    uploads = uploader.TensorBoardUploader(
        experiment_name=arguments.experiment,
        tensorboard_resource_name=name,
        blob_storage_bucket=bucket,
        blob_storage_folder=folder,
        allowed_plugins=PLUGINS,
        writer_client=client,
        logdir=arguments.folder,
        logdir_poll_rate_limiter=Passes(arguments.seconds, terminated),
        verbosity=0,
    )
    uploads.create_experiment()
    path = uploads.get_experiment_resource_name().replace("/", "+")
    print(f"https://{arguments.region}.tensorboard.googleusercontent.com/experiment/{path}", flush=True)
    try:
        uploads.start_uploading()
    except Finished:
        print(f"uploaded: {arguments.folder}", flush=True)


def _resource_name(client: TensorboardClientWithOverride, arguments: argparse.Namespace) -> str:
    """The TensorBoard of that display name; its own name has a number that the server gave it."""
    parent = f"projects/{arguments.project}/locations/{arguments.region}"
    request = {"parent": parent, "filter": f'display_name="{arguments.tensorboard}"'}
    for tensorboard in client.list_tensorboards(request=request):
        return tensorboard.name
    sys.exit(f"there is no TensorBoard '{arguments.tensorboard}' in {parent}; deploy the environment")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
