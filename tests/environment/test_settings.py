"""Each setting: what it takes, what is refused, and the words of the refusal."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone
from ipaddress import IPv4Network
from pathlib import Path

import pytest

import environment
from environment import Member, MemberKind
from environment.settings.model import KEYS
from tests.loading import load_text, loaded, refused, refused_text

VARS_ENV = Path(__file__).parent.parent.parent / "vars.env"


def test_only_the_project_is_required() -> None:
    settings = loaded().settings
    assert settings.project_id == "my-project"
    assert (settings.resource_prefix, settings.region, settings.zone) == ("tpu", "us-east5", "us-east5-b")
    assert (settings.tpu_type, settings.num_tpu_pools, settings.namespace) == ("v6e-16", 2, "tpu-training")
    assert (settings.cpu_machine_type, settings.cpu_min_nodes, settings.cpu_max_nodes) == ("n2-standard-8", 1, 4)
    assert (settings.subnet_cidr, settings.pods_cidr) == (IPv4Network("10.0.0.0/20"), IPv4Network("10.4.0.0/14"))
    assert (settings.services_cidr, settings.control_plane_cidr) == (IPv4Network("10.1.0.0/20"), None)
    assert (settings.release_channel, settings.gke_version, settings.maintenance_start) == ("REGULAR", "", "03:00")
    assert settings.maintenance_exclusion_start is settings.maintenance_exclusion_end is None
    assert (settings.deletion_protection, settings.destroy_data) == (True, False)
    assert settings.project_number == settings.tf_state_bucket == settings.tf_state_prefix == ""
    assert settings.chart_repository == settings.image_registry == ""


@pytest.mark.published
def test_the_vars_env_of_the_repository_states_the_defaults() -> None:
    assert environment.load(VARS_ENV, {}) == loaded(PROJECT_ID="my-project")


def test_the_vars_env_of_the_repository_explains_every_key_once() -> None:
    text = VARS_ENV.read_text()
    assert re.findall("^([A-Z_]+)=", text, re.MULTILINE) == list(KEYS)
    paragraphs = [paragraph.splitlines() for paragraph in text.split("\n\n")]
    for lines in paragraphs:
        if any(not line.startswith("#") for line in lines):
            assert lines[0].startswith("# "), lines


def test_an_empty_value_means_the_default() -> None:
    assert loaded(**dict.fromkeys(set(KEYS) - {"PROJECT_ID"}, "")) == loaded()


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("PROJECT_ID", "a12345"),
        ("PROJECT_ID", "a" * 30),
        ("PROJECT_NUMBER", "123456789012"),
        ("RESOURCE_PREFIX", "a" * 24),
        ("TENSORBOARD_REGION", "northamerica-northeast1"),
        ("NUM_TPU_POOLS", "64"),
        ("NAMESPACE", "a"),
        ("NAMESPACE", "2024-runs"),
        ("CPU_MACHINE_TYPE", "c3d-highmem-30"),
        ("RELEASE_CHANNEL", "EXTENDED"),
        ("GKE_VERSION", "1.34"),
        ("GKE_VERSION", "1.34.1"),
        ("GKE_VERSION", "1.35.2-gke.1842000"),
        ("MAINTENANCE_START", "23:59"),
        ("TF_STATE_BUCKET", "my_state-bucket"),
        ("TF_STATE_PREFIX", "teams/research"),
        ("CHART_REPOSITORY", "oci://mirror.example.com:5000/charts"),
        ("CHART_REPOSITORY", "oci://mirror.example.com:65535"),
        ("CHART_REPOSITORY", "https://charts.example.com"),
        ("IMAGE_REGISTRY", "us-east5-docker.pkg.dev/my-project/mirror"),
    ],
)
def test_a_good_value_is_taken_as_it_is(key: str, value: str) -> None:
    assert str(getattr(loaded(**{key: value}).settings, key.lower())) == value


@pytest.mark.parametrize("between", [",", ", ", " ", " , ", ",,"])
def test_members_are_separated_by_commas_or_spaces(between: str) -> None:
    text = between.join(["alice@example.com", "group:tpu@example.com", "bob+tpu@example.com"])
    environment = loaded(MEMBERS=text, RBAC_SECURITY_GROUP="gke-security-groups@example.com")
    assert environment.teams[0].members == (
        Member(kind=MemberKind.USER, email="alice@example.com"),
        Member(kind=MemberKind.GROUP, email="tpu@example.com"),
        Member(kind=MemberKind.USER, email="bob+tpu@example.com"),
    )


def test_as_many_members_as_a_fleet_file_takes_fit_into_the_setting() -> None:
    names = [f"{'n' * 30}{number}@example.com" for number in range(500)]
    assert len(loaded(MEMBERS=",".join(names)).teams[0].members) == 500
    (problem,) = refused(MEMBERS=",".join([*names, "one-more@example.com"]))
    assert "there are 501 members, and 500 at most; name a Google group" in problem


def test_all_mistakes_in_the_members_are_reported_in_one_line() -> None:
    (problem,) = refused(MEMBERS="bob, a@b.com, a@b.com, Al@b.com, x@y.iam.gserviceaccount.com")
    assert problem == (
        "MEMBERS: 'bob, a@b.com, a@b.com, Al@b.com, x@y.iam.gserviceaccount.com' cannot be used: 'bob' is not a "
        "member; write alice@example.com, or group:team@example.com for a Google group; 'a@b.com' is there "
        "twice; keep one; 'Al@b.com' has capital letters, and GKE compares addresses letter by letter; write it in "
        "lower case; "
        "'x@y.iam.gserviceaccount.com' is a service account; members are people and Google groups"
    )
    (problem,) = refused(MEMBERS=" ".join("abcdefg"))
    assert problem.endswith("; and 2 more")


def test_a_group_among_the_members_needs_the_security_group() -> None:
    (problem,) = refused(MEMBERS="group:tpu@example.com")
    assert problem.startswith("MEMBERS: 'group:tpu@example.com' needs RBAC_SECURITY_GROUP")


def test_an_ai_zone_is_a_zone() -> None:
    settings = loaded(REGION="us-central1", ZONE="us-central1-ai1a").settings
    assert settings.zone == "us-central1-ai1a"


def test_values_get_their_types() -> None:
    settings = loaded(
        CONTROL_PLANE_CIDR="172.16.0.0/28",
        DELETION_PROTECTION="False",
        DESTROY_DATA="TRUE",
        TPU_TYPE="V5E-16",
        MAINTENANCE_EXCLUSION_START="2027-01-31T02:00:00+02:00",
        MAINTENANCE_EXCLUSION_END="2027-02-28T00:00:00Z",
    ).settings
    assert settings.control_plane_cidr == IPv4Network("172.16.0.0/28")
    assert (settings.deletion_protection, settings.destroy_data) == (False, True)
    assert settings.tpu_type == "v5litepod-16"
    assert settings.maintenance_exclusion_start == datetime(2027, 1, 31, tzinfo=timezone.utc)


@pytest.mark.parametrize(
    ("key", "value", "because"),
    [
        ("PROJECT_ID", "short", "is not a project id"),
        ("PROJECT_ID", "a" * 31, "is not a project id"),
        ("PROJECT_ID", "My-Project", "is not a project id"),
        ("PROJECT_ID", "1-project", "is not a project id"),
        ("PROJECT_ID", "my-project-", "is not a project id"),
        ("PROJECT_ID", "example.com:my-project", "domain-scoped"),
        ("PROJECT_ID", "123456789012", "write the project's id here"),
        ("PROJECT_NUMBER", "my-project", "is not a project number"),
        ("PROJECT_NUMBER", "-5", "is not a project number"),
        ("RESOURCE_PREFIX", "Team", "cannot begin names"),
        ("RESOURCE_PREFIX", "9lives", "cannot begin names"),
        ("RESOURCE_PREFIX", "tpu-", "cannot begin names"),
        ("REGION", "us-east5-b", "is a zone; its region is 'us-east5'"),
        ("REGION", "useast5", "is not a region"),
        ("ZONE", "us-east5", "is a region; write one of its zones, such as 'us-east5-b'"),
        ("ZONE", "us-east5-bb", "is not a zone"),
        ("CPU_ZONE", "us-east5", "is a region; write one of its zones"),
        ("CPU_ZONE", "us-east5-ai1a", "is an AI zone, which Google recommends for accelerators only"),
        ("CPU_ZONE", "us-east1-b", "is not in REGION 'us-east5'; choose a zone of that region, or leave it empty"),
        ("TENSORBOARD_REGION", "US-CENTRAL1", "is not a region"),
        ("NUM_TPU_POOLS", "0", "is not a whole number from 1 to 10000"),
        ("NUM_TPU_POOLS", "-1", "is not a whole number"),
        ("NUM_TPU_POOLS", "2.0", "is not a whole number"),
        ("NUM_TPU_POOLS", "1e3", "is not a whole number"),
        ("NUM_TPU_POOLS", "two", "is not a whole number"),
        ("NUM_TPU_POOLS", "٢", "is not a whole number"),
        ("NUM_TPU_POOLS", "99999999999999999999", "is not a whole number"),
        ("NAMESPACE", "Research", "cannot name a namespace"),
        ("NAMESPACE", "a_b", "cannot name a namespace"),
        ("NAMESPACE", "a" * 64, "cannot name a namespace"),
        ("NAMESPACE", "default", "choose another name"),
        ("NAMESPACE", "kube-system", "choose another name"),
        ("NAMESPACE", "gke-managed-system", "choose another name"),
        ("NAMESPACE", "kueue-system", "choose another name"),
        ("CPU_MACHINE_TYPE", "n2-standard-7", "n2-standard comes with 2, 4, 8"),
        ("CPU_MACHINE_TYPE", "c2-highmem-8", "c2 comes as standard"),
        ("CPU_MACHINE_TYPE", "m3-ultramem-32", "is not a machine type of the series"),
        ("CPU_MACHINE_TYPE", "n2-highcpu-128", "n2-highcpu comes with"),
        ("CPU_MACHINE_TYPE", "e2-medium", "is not a machine type of the series"),
        ("CPU_MIN_NODES", "0", "is not a whole number from 1"),
        ("CPU_MAX_NODES", "1001", "is not a whole number from 1 to 1000"),
        ("SUBNET_CIDR", "10.0.0.1/20", "did you mean '10.0.0.0/20'?"),
        ("SUBNET_CIDR", "10.0.0.0", "is not an IPv4 range"),
        ("SUBNET_CIDR", "10.0.0.0/33", "is not an IPv4 range"),
        ("SUBNET_CIDR", "10.0.0.0/255.255.240.0", "is not an IPv4 range"),
        ("SUBNET_CIDR", "10.0.0.256/20", "is not an IPv4 range"),
        ("SUBNET_CIDR", "fd00::/20", "is not IPv4"),
        ("SUBNET_CIDR", "10.0.0.0/30", "from /8 to /29"),
        ("PODS_CIDR", "10.0.0.0/8", "from /9 to /28"),
        ("SERVICES_CIDR", "10.1.0.0/28", "from /16 to /27"),
        ("CONTROL_PLANE_CIDR", "172.16.0.0/27", "must be a /28"),
        ("RELEASE_CHANNEL", "regular", "is not one of RAPID, REGULAR, STABLE, EXTENDED"),
        ("GKE_VERSION", "1.3", "is not a GKE version"),
        ("GKE_VERSION", "latest", "is not a GKE version"),
        ("GKE_VERSION", "v1.34.1", "is not a GKE version"),
        ("MAINTENANCE_START", "24:00", "is not a time of day"),
        ("MAINTENANCE_START", "3:00", "is not a time of day"),
        ("MAINTENANCE_EXCLUSION_START", "2030-01-31", "is not an RFC 3339 time"),
        ("MAINTENANCE_EXCLUSION_START", "2030-02-30T00:00:00Z", "is not an RFC 3339 time"),
        ("MAINTENANCE_EXCLUSION_START", "2030-01-31T00:00:00", "is not an RFC 3339 time"),
        ("MAINTENANCE_EXCLUSION_END", "0001-01-01T00:00:00+23:00", "is not an RFC 3339 time"),
        ("DELETION_PROTECTION", "yes", "is neither true nor false"),
        ("TF_STATE_BUCKET", "gs://bucket", "cannot name a bucket"),
        ("TF_STATE_BUCKET", "ab", "cannot name a bucket"),
        ("TF_STATE_PREFIX", "/tpu", "cannot be a folder"),
        ("TF_STATE_PREFIX", "tpu/", "cannot be a folder"),
        ("TF_STATE_PREFIX", "a/../b", "cannot be a folder"),
        ("CHART_REPOSITORY", "mirror.example.com/charts", "is not a chart repository"),
        ("CHART_REPOSITORY", "oci://mirror.example.com/charts/", "is not a chart repository"),
        ("CHART_REPOSITORY", "oci://mirror.example.com:65536/charts", "has port 65536"),
        ("EGRESS", "none", "is not one of internet, google"),
        ("ALLOWED_IMAGES", "gcr.io", "has 'gcr.io', which is no beginning of an image"),
        ("ALLOWED_IMAGES", "gcr.io/a/, gcr.io/my-project", "has 'gcr.io/my-project', which is no beginning"),
        ("ALLOWED_IMAGES", "python:", "such as gcr.io/my-project/ or docker.io/library/python:"),
        ("ALLOWED_IMAGES", "https://gcr.io/a/", "without https://"),
        ("ALLOWED_IMAGES", ",", "names no beginning of an image"),
        ("ALLOWED_IMAGES", "gcr.io/a/ docker.io/b/", "which is no beginning of an image"),
        ("ALLOWED_IMAGES", "gcr.io/../", "which is no beginning of an image"),
        ("ALLOWED_IMAGES", "registry.example:99999/a/", "the highest there is is 65535"),
        ("IMAGE_REGISTRY", "https://mirror.example.com", "is not an image registry"),
        ("IMAGE_REGISTRY", "mirror.example.com:99999", "has port 99999"),
    ],
)
def test_a_bad_value_is_refused_in_one_line_with_its_key_and_value(key: str, value: str, because: str) -> None:
    (problem,) = [problem for problem in refused(**{key: value}) if problem.startswith(f"{key}: ")]
    assert problem.startswith(f"{key}: '{value}' ") and because in problem, problem


def test_a_missing_project_is_refused() -> None:
    expected = ("PROJECT_ID: is required; set it to the id of your Google Cloud project",)
    assert refused_text("") == refused_text("PROJECT_ID=\n") == refused_text('PROJECT_ID=""') == expected


def test_an_unknown_tpu_type_names_the_nearest() -> None:
    assert refused(TPU_TYPE="v6e-17") == ("TPU_TYPE: unknown TPU type 'v6e-17'; did you mean 'v6e-16'?",)


def test_a_zone_outside_the_region_is_refused() -> None:
    assert refused(ZONE="us-east1-b") == (
        "ZONE: 'us-east1-b' is not in REGION 'us-east5'; choose a zone of that region, or set REGION=us-east1",
    )
    assert refused(REGION="us-east1", ZONE="us-east15-b")


def test_fewest_cpu_nodes_above_the_most_are_refused() -> None:
    (problem,) = refused(CPU_MIN_NODES="5")
    assert problem.startswith("CPU_MIN_NODES: '5' is more than CPU_MAX_NODES '4'")


def test_destroying_data_while_protected_is_refused() -> None:
    (problem,) = refused(DESTROY_DATA="true")
    assert problem.startswith("DESTROY_DATA: 'true' contradicts DELETION_PROTECTION 'true'")
    assert loaded(DESTROY_DATA="true", DELETION_PROTECTION="false").settings.destroy_data


def test_an_exclusion_needs_both_ends_in_order() -> None:
    start, end = "2027-01-01T00:00:00Z", "2027-02-01T00:00:00Z"
    assert refused(MAINTENANCE_EXCLUSION_START=start) == (
        "MAINTENANCE_EXCLUSION_END: is empty while MAINTENANCE_EXCLUSION_START is set; set both or none",
    )
    assert refused(MAINTENANCE_EXCLUSION_END=end)[0].startswith("MAINTENANCE_EXCLUSION_START: is empty")
    (problem,) = refused(MAINTENANCE_EXCLUSION_START=end, MAINTENANCE_EXCLUSION_END=start)
    assert problem.startswith(f"MAINTENANCE_EXCLUSION_END: '{start}' is not after MAINTENANCE_EXCLUSION_START '{end}'")
    assert refused(MAINTENANCE_EXCLUSION_START=start, MAINTENANCE_EXCLUSION_END=start)


@pytest.mark.parametrize(
    ("typed", "meant"), [("PROJECTID", "PROJECT_ID"), ("zone", "ZONE"), ("TPU_POOLS", "NUM_TPU_POOLS")]
)
def test_an_unknown_key_names_the_one_that_was_meant(typed: str, meant: str) -> None:
    assert f"{typed}: is not a setting; did you mean {meant}?" in refused(**{typed: "us-east1-d"})


def test_an_unknown_key_that_resembles_none_is_refused() -> None:
    (problem,) = refused(NUM_OF_CHIPS="16")
    assert problem.startswith("NUM_OF_CHIPS: is not a setting; remove it")


def test_a_misspelt_key_is_one_mistake_and_not_two() -> None:
    assert len(refused_text("PROJECTID=my-project\n")) == 1
    assert len(refused(REGION="us-east1", ZOEN="us-east1-d")) == 1


def test_all_mistakes_are_reported_at_once() -> None:
    problems = refused(
        PROJECT_ID="X", TPU_TYPE="v6e-17", NUM_TPU_POOLS="0", SUBNET_CIDR="10.4.0.0/20", ZONE="us-east1-b", COLOUR="red"
    )
    assert [problem.split(":")[0] for problem in problems] == [
        *("COLOUR", "PROJECT_ID", "TPU_TYPE", "NUM_TPU_POOLS", "ZONE", "PODS_CIDR"),
    ]


def test_what_depends_on_a_bad_value_is_not_judged() -> None:
    (problem,) = refused(REGION="europe", ZONE="europe-west4-a")
    assert problem.startswith("REGION: 'europe' is not a region")


def test_the_process_environment_wins_and_is_named_when_wrong() -> None:
    text = "PROJECT_ID=my-project\nTPU_TYPE=v6e-16\n"
    assert load_text(text, {"TPU_TYPE": "v6e-32", "HOME": "/root"}).settings.tpu_type == "v6e-32"
    assert refused_text(text, {"TPU_TYPE": "v6e-17"}) == (
        "TPU_TYPE: unknown TPU type 'v6e-17'; did you mean 'v6e-16'? "
        "(TPU_TYPE from the process environment, which takes precedence over vars.env)",
    )
    (problem,) = refused_text(text, {"REGION": "us-east1"})
    assert problem.startswith("ZONE: 'us-east5-b' is not in REGION 'us-east1'")
    assert problem.endswith("(REGION from the process environment, which takes precedence over vars.env)")


def test_an_empty_variable_of_the_process_environment_counts_as_not_set() -> None:
    assert load_text("PROJECT_ID=my-project\n", {"PROJECT_ID": "", "ZONE": " "}) == loaded()


def test_a_long_value_is_refused_and_shortened_in_the_message() -> None:
    (problem,) = refused(GKE_VERSION="1." * 100_000)
    assert len(problem) < 200 and "200000 characters long" in problem


def test_control_characters_are_shown_as_escapes() -> None:
    (problem,) = refused_text("PROJECT_ID=my-project\nZONE=us\x00\x1b[31m\n")
    assert problem.startswith(r"ZONE: 'us\x00\x1b[31m' is not a zone")
    (problem,) = refused_text("PROJECT_ID=my-project\n", {"ZONE": "us\udcff"})
    assert problem.startswith(r"ZONE: 'us\udcff' is not a zone")


def test_an_exclusion_in_the_past_is_a_warning() -> None:
    past = loaded(MAINTENANCE_EXCLUSION_START="2020-01-01T00:00:00Z", MAINTENANCE_EXCLUSION_END="2020-02-01T00:00:00Z")
    assert past.warnings == (
        "MAINTENANCE_EXCLUSION_END: '2020-02-01T00:00:00Z' is in the past, so the exclusion keeps no upgrade away",
    )


def test_an_exclusion_longer_than_gke_supports_a_version_is_refused() -> None:
    in_twenty_months = datetime.now(timezone.utc) + timedelta(days=600)
    exclusion = {
        "MAINTENANCE_EXCLUSION_START": "2020-01-01T00:00:00Z",
        "MAINTENANCE_EXCLUSION_END": f"{in_twenty_months:%Y-%m-%dT%H:%M:%SZ}",
    }
    (problem,) = refused(**exclusion, RELEASE_CHANNEL="STABLE")
    assert problem.startswith("MAINTENANCE_EXCLUSION_END: ") and "is more than 14 months away" in problem
    assert loaded(**exclusion, RELEASE_CHANNEL="EXTENDED").warnings == ()


def test_a_gke_version_that_kueue_is_not_tested_on_is_a_warning() -> None:
    (warning,) = loaded(GKE_VERSION="1.33.4", RELEASE_CHANNEL="EXTENDED").warnings
    assert warning.startswith("GKE_VERSION: '1.33.4' is older than 1.34")
    assert loaded(GKE_VERSION="1.34.0").warnings == ()


def test_the_default_has_nothing_to_warn_of() -> None:
    assert loaded().warnings == ()
