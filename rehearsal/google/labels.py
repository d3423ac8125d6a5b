"""Labels as the google provider plans them: of the resource, of Terraform, and in effect.

https://registry.terraform.io/providers/hashicorp/google/6.50.0/docs/guides/provider_reference#default_labels
"""

from __future__ import annotations

from typing import Any

from rehearsal.cloud import Attributes
from rehearsal.terraform.resource_type import Client
from rehearsal.terraform.values import UNKNOWN, is_known

# https://registry.terraform.io/providers/hashicorp/google/6.50.0/docs/guides/provider_reference#attribution-label
ATTRIBUTION = {"goog-terraform-provisioned": "true"}


def labels_of(client: Client, prior: Attributes | None, labels: Any) -> Attributes:
    """`terraform_labels` and `effective_labels` of a resource with these labels, in place of `prior`."""
    if not is_known(labels):
        return {"terraform_labels": UNKNOWN, "effective_labels": UNKNOWN}
    before = (prior or {}).get("effective_labels") or {}
    ours = dict(client.settings.get("default_labels") or {})
    adds = client.settings.get("add_terraform_attribution_label") is not False
    always = client.settings.get("terraform_attribution_label_addition_strategy") == "PROACTIVE"
    if adds and (prior is None or always or ATTRIBUTION.keys() <= before.keys()):
        ours |= ATTRIBUTION
    ours |= labels or {}
    dropped = ((prior or {}).get("terraform_labels") or {}).keys() - ours.keys()
    kept = {key: value for key, value in before.items() if key not in dropped}
    return {"terraform_labels": ours, "effective_labels": kept | ours}
