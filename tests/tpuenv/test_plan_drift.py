"""What the drift check says is to be done: another thing with a pipeline than without one."""

from __future__ import annotations

from tests.loading import loaded
from tpuenv.commands.plan import put_back

PIPELINE = {
    "BUILD_REPOSITORY": "projects/my-project/locations/us-central1/connections/github/repositories/tpu-environment",
    "BUILDER_IMAGE": "us-east5-docker.pkg.dev/my-project/tpu-builder/builder@sha256:" + "0" * 64,
    "BUILD_BRANCH": "live",
}


def test_without_a_pipeline_a_person_deploys() -> None:
    assert "`tpuenv deploy` makes it what the code says" in put_back(loaded())
    assert "gcloud" not in put_back(loaded())


def test_with_a_pipeline_its_deploy_is_run_and_shows_what_nobody_has_reviewed() -> None:
    advice = put_back(loaded(**PIPELINE))
    assert (
        "\n  gcloud builds triggers run tpu-deploy --branch=live --region=us-central1 --project=my-project\n" in advice
    )
    assert "asks for one more approval" in advice
    assert "tpuenv deploy" not in advice
