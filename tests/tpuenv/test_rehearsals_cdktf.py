"""What Terraform prints, as the rehearsal reads it: how far it is, and what it warns of."""

from __future__ import annotations

import pytest

from tpuenv.rehearsals.cdktf_in_world import Run, StackProgress, StackRun, stack_progress

# Terraform 1.11.4, its output not a terminal.
APPLY = """\
google_container_cluster.cluster: Refreshing state... [id=projects/my-project/locations/us-east5/clusters/tpu-cluster]

Terraform used the selected providers to generate the following execution plan.

Plan: 2 to add, 1 to change, 1 to destroy.
google_container_node_pool.cpu: Modifying... [id=projects/my-project]
google_container_node_pool.cpu: Modifications complete after 0s [id=projects/my-project]
google_container_node_pool.tpu-1 (deposed object 1c2d): Destroying... [id=projects/my-project]
google_container_node_pool.tpu-1: Destruction complete after 1s
google_container_node_pool.tpu-0: Creating...
google_container_node_pool.tpu-1: Creating...
google_container_node_pool.tpu-0: Still creating... [10s elapsed]
google_container_node_pool.tpu-0: Creation complete after 12s [id=projects/my-project]
"""

WARNING = """\
helm_release.gate_release_629AE5E4: Creation complete after 1s [id=gate]

Warning: Kueue is installed before JobSet: its webhooks refuse JobSet's own jobs until they answer

  with helm_release.kueue,
  on cdk.tf.json line 278, in resource.helm_release.kueue:
 278:       },

(and 5 more similar warnings elsewhere)

Warning: Argument is deprecated

  with google_container_cluster.cluster,
  on cdk.tf.json line 12, in resource.google_container_cluster.cluster:
  12:       },

Use another
one instead.

Apply complete! Resources: 36 added, 0 changed, 0 destroyed.
"""


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (1, StackProgress(stack="a")),
        (5, StackProgress(stack="a", planned=4)),
        (6, StackProgress(stack="a", planned=4, current="Modifying google_container_node_pool.cpu")),
        (8, StackProgress(stack="a", planned=4, done=1, current="Destroying google_container_node_pool.tpu-1")),
        (9, StackProgress(stack="a", planned=4, done=2)),
        (12, StackProgress(stack="a", planned=4, done=2, current="Creating google_container_node_pool.tpu-1")),
        (13, StackProgress(stack="a", planned=4, done=3, current="Creating google_container_node_pool.tpu-1")),
    ],
)
def test_it_is_known_how_far_terraform_is_and_what_it_makes(lines: int, expected: StackProgress) -> None:
    assert stack_progress("a", "".join(APPLY.splitlines(keepends=True)[:lines])) == expected


def test_a_warning_is_one_line_with_its_address() -> None:
    stack = StackRun(name="platform", code=0, text=WARNING)
    assert stack.warnings == [
        "Kueue is installed before JobSet: its webhooks refuse JobSet's own jobs until they answer "
        "(helm_release.kueue)",
        "Argument is deprecated (google_container_cluster.cluster). Use another one instead.",
    ]
    assert stack.errors == []


def test_an_error_ends_where_a_warning_begins() -> None:
    stack = StackRun(name="a", code=1, text="\nError: one\n\n  with a.b,\n\nWarning: two\n\nError: three\n")
    assert stack.errors == ["one\n\n  with a.b,", "three"]
    assert stack.warnings == ["two"]


def test_what_python_warns_of_while_it_synthesizes_is_known() -> None:
    text = (
        "main.py:3: RuntimeWarning: x is not installed: loaded the plain, slow way\n  warnings.warn(\nWarning: other\n"
    )
    assert Run(code=0, text=text, stacks=[]).synthesis_warnings == ["x is not installed: loaded the plain, slow way"]
