"""Google Cloud, faked. Imports rehearsal.terraform and rehearsal.cloud.

The resource types and their rules, by service: gke (clusters), node_pools (of any kind), tpu and addresses (further
rules for node pools), network, storage, iam (service accounts, roles, members), project (with its enabled APIs),
tpu_vms, monitoring, services (Artifact Registry and Vertex AI). What they share: resource (a type as a row), names,
labels, errors, locations. Whether a caller may do something: permissions (the roles that are bound), conditions (of
bindings), http_access (the same for requests over HTTP). APIs that are called over HTTP: cloud_storage_api,
project_api, compute_api, cluster_api, list_apis, artifact_registry_api.
"""
