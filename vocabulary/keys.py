"""Keys of labels, annotations, resources and taints, each of them once, with whose they are."""

from __future__ import annotations

# Kubernetes: https://kubernetes.io/docs/reference/labels-annotations-taints/
ZONE_LABEL = "topology.kubernetes.io/zone"
REGION_LABEL = "topology.kubernetes.io/region"
MACHINE_LABEL = "node.kubernetes.io/instance-type"

# Of batch Jobs, on pods: https://kubernetes.io/docs/reference/labels-annotations-taints/
JOB_LABEL = "batch.kubernetes.io/job-name"
JOB_UID_LABEL = "batch.kubernetes.io/controller-uid"
COMPLETION_INDEX_LABEL = "batch.kubernetes.io/job-completion-index"  # of an Indexed Job; an annotation too

# JobSet 0.12.0, on pods: api/jobset/v1alpha2
JOBSET_LABEL = "jobset.sigs.k8s.io/jobset-name"
REPLICATED_JOB_LABEL = "jobset.sigs.k8s.io/replicatedjob-name"
REPLICATED_JOB_REPLICAS_LABEL = "jobset.sigs.k8s.io/replicatedjob-replicas"
JOB_INDEX_LABEL = "jobset.sigs.k8s.io/job-index"  # from 0 in the replicated job: the slice
JOB_GLOBAL_INDEX_LABEL = "jobset.sigs.k8s.io/job-global-index"  # from 0 in the JobSet
RESTART_ATTEMPT_LABEL = "jobset.sigs.k8s.io/restart-attempt"

# KubeRay 1.7.0, on pods: ray-operator/controllers/ray/utils/constant.go
RAY_NODE_LABEL = "ray.io/is-ray-node"
RAY_CLUSTER_LABEL = "ray.io/cluster"  # the RayCluster, that of a RayJob too
RAY_NODE_TYPE_LABEL = "ray.io/node-type"  # head or worker
RAY_GROUP_LABEL = "ray.io/group"
RAY_REPLICA_LABEL = "ray.io/worker-group-replica-index"  # from 0 in the group: the slice
RAY_HOST_LABEL = "ray.io/replica-host-index"  # where the slice has several hosts
RAY_ORIGIN_LABEL = "ray.io/originated-from-cr-name"  # the RayJob, on its submitter and its RayCluster
RAY_ORIGIN_KIND_LABEL = "ray.io/originated-from-crd"

# GKE's Ray add-on, on pods of a KubeRay that does not number them: ai-on-gke/kuberay-tpu-webhook, main.go
RAY_ADDON_REPLICA_LABEL = "replicaIndex"  # slice-0: the group and the slice
TPU_HOST_VARIABLE = "TPU_WORKER_ID"

# On nodes that run no program, KWOK's and a rehearsal's: https://kwok.sigs.k8s.io/docs/user/kwok-manage-nodes-and-pods/
SIMULATED_NODE_ANNOTATION = "kwok.x-k8s.io/node"

# GKE: https://cloud.google.com/kubernetes-engine/docs/concepts/tpus
TPU = "google.com/tpu"  # the resource, and the key of the taint that GKE puts on every TPU node
ACCELERATOR_LABEL = "cloud.google.com/gke-tpu-accelerator"  # on every TPU node
TOPOLOGY_LABEL = "cloud.google.com/gke-tpu-topology"  # on every TPU node
POOL_LABEL = "cloud.google.com/gke-nodepool"
SPOT_LABEL = "cloud.google.com/gke-spot"
QUEUED_TAINT = "cloud.google.com/gke-queued"  # on nodes that take only pods with a ProvisioningRequest
# On pods: https://cloud.google.com/kubernetes-engine/docs/how-to/extended-duration-pods
SAFE_TO_EVICT_ANNOTATION = "cluster-autoscaler.kubernetes.io/safe-to-evict"
FLEX_START_LABEL = "cloud.google.com/gke-flex-start"

# GKE, of nodes that use a reservation: https://cloud.google.com/kubernetes-engine/docs/how-to/consuming-reservations
RESERVATION_AFFINITY_LABEL = "cloud.google.com/reservation-affinity"  # "specific" with a name
RESERVATION_NAME_LABEL = "cloud.google.com/reservation-name"
RESERVATION_PROJECT_LABEL = "cloud.google.com/reservation-project"  # where another project shares it
RESERVATION_BLOCK_LABEL = "cloud.google.com/reservation-blocks"
RESERVATION_SUB_BLOCK_LABEL = "cloud.google.com/reservation-subblocks"

# Kueue 0.19.2: pkg/controller/constants, apis/kueue/v1beta2
QUEUE_LABEL = "kueue.x-k8s.io/queue-name"
PRIORITY_LABEL = "kueue.x-k8s.io/priority-class"
PREBUILT = "kueue.x-k8s.io/prebuilt-workload-name"  # a label or an annotation
ELASTIC_ANNOTATION = "kueue.x-k8s.io/elastic-job"
GATED_BY_ANNOTATION = "kueue.x-k8s.io/admission-gated-by"
MIN_PARALLELISM_ANNOTATION = "kueue.x-k8s.io/job-min-parallelism"
ADMITTED_POD_LABEL = "kueue.x-k8s.io/podset"  # on the pods of an admitted workload
LOCAL_QUEUE = "default"  # the LocalQueue of a namespace to which jobs without a queue label go

# Kueue, as this environment configures it, counts no resource whose name begins so. There is room for scratch files on
# the boot disks, which some of KubeRay's TPU samples ask for.
UNCOUNTED_PREFIXES = ("ephemeral-storage",)

# Ours.
POOL_GROUP_LABEL = "tpuenv/pool-group"  # on nodes: the name of the pool group; Kueue flavors select by it
CPU_GROUP = "cpu"  # its value on the nodes of the CPU pool
SYSTEM_GROUP = "system"  # its value on the nodes that run this environment's own controllers and nothing of the teams
SYSTEM_TAINT = "tpuenv/system"  # on these nodes, with the value "true" and the effect NoSchedule
TEAM_LABEL = "tpuenv/team"  # on the namespace of a team
HOST_ACCESS_LABEL = "tpuenv/host-access"  # there too, of a team with host_access
IMAGES_ANNOTATION = "tpuenv/allowed-images"  # there too: prefixes with commas, of which an image has one
SERVES_LABEL = "tpuenv/serves"  # on the pods of a team that the network outside of the cluster may call
RECIPE_LABEL = "tpuenv/recipe"  # on what `tpuenv submit` creates
SUBMISSION_ANNOTATION = "tpuenv/submission"  # there too: another value for each start of the command
LINKS = "tpuenv-links"  # the ConfigMap with the addresses of the dashboards, beside Kueue

# Ours, on flavors: what one node of the flavor has for a pod, as quantities. Kueue counts whole pools, so admission
# reads it here. On the flavor of cores and memory it is a node of the CPU pool, and what that pool has at its largest.
NODE_CPU_ANNOTATION = "tpuenv/node-cpu"
NODE_MEMORY_ANNOTATION = "tpuenv/node-memory"
NODE_CHIPS_ANNOTATION = "tpuenv/node-chips"
POOL_CPU_ANNOTATION = "tpuenv/pool-cpu"
POOL_MEMORY_ANNOTATION = "tpuenv/pool-memory"

# Ours, on the flavor of cores and memory: the mode of the cluster, which decides what GKE takes of pods.
CLUSTER_MODE_ANNOTATION = "tpuenv/cluster-mode"
AUTOPILOT = "autopilot"  # its value; without the annotation a cluster is a Standard one
