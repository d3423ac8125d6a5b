"""The fields of the four kinds of workload, by tests/generate/field_table.py.

From the schemas of JobSet 0.12.0 (for Jobs and pods as well) and KubeRay 1.7.0. A line is a type and its fields:
`name` is text, `name#` a whole number of 32 bits and `name##` of 64, `name?` true or false, `name~` a quantity,
`name*` anything, `name:Type` an object, `name[Type]` a list and `name{Type}` a mapping to them ([] and {} of text);
`!` before a name: it must be there. In <> stand the values that a text may have, the range of a number, or of a list
the fields by which its items differ and how many they may be.
"""

# fmt: off
TYPES = """
Job: apiVersion !kind metadata:ObjectMeta !spec:JobSpec status*
JobSet: apiVersion !kind metadata:ObjectMeta !spec:JobSetSpec status*
RayCluster: apiVersion !kind metadata:ObjectMeta !spec:RayClusterSpec status*
RayJob: apiVersion !kind metadata:ObjectMeta !spec:RayJobSpec status*
ObjectMeta: annotations{} creationTimestamp deletionGracePeriodSeconds## deletionTimestamp finalizers[] generateName
  generation## labels{} managedFields[*] name namespace ownerReferences[*] resourceVersion selfLink uid
MatchExpressions: !key !operator values[]
Preference: matchExpressions[MatchExpressions] matchFields[MatchExpressions]
PreferredDuringSchedulingIgnoredDuringExecution: !preference:Preference !weight#
RequiredDuringSchedulingIgnoredDuringExecution: !nodeSelectorTerms[Preference]
NodeAffinity: preferredDuringSchedulingIgnoredDuringExecution[PreferredDuringSchedulingIgnoredDuringExecution]
  requiredDuringSchedulingIgnoredDuringExecution:RequiredDuringSchedulingIgnoredDuringExecution
LabelSelector: matchExpressions[MatchExpressions] matchLabels{}
PodAffinityTerm: labelSelector:LabelSelector matchLabelKeys[] mismatchLabelKeys[] namespaceSelector:LabelSelector
  namespaces[] !topologyKey
PreferredDuringSchedulingIgnoredDuringExecution2: !podAffinityTerm:PodAffinityTerm !weight#
PodAffinity: preferredDuringSchedulingIgnoredDuringExecution[PreferredDuringSchedulingIgnoredDuringExecution2]
  requiredDuringSchedulingIgnoredDuringExecution[PodAffinityTerm]
Affinity: nodeAffinity:NodeAffinity podAffinity:PodAffinity podAntiAffinity:PodAffinity
ConfigMapKeyRef: !key name optional?
FieldRef: apiVersion !fieldPath
FileKeyRef: !key optional? !path !volumeName
ResourceFieldRef: containerName divisor~ !resource
ValueFrom: configMapKeyRef:ConfigMapKeyRef fieldRef:FieldRef fileKeyRef:FileKeyRef resourceFieldRef:ResourceFieldRef
  secretKeyRef:ConfigMapKeyRef
Env: !name value valueFrom:ValueFrom
ConfigMapRef: name optional?
EnvFrom: configMapRef:ConfigMapRef prefix secretRef:ConfigMapRef
Exec: command[]
HttpHeaders: !name !value
HttpGet: host httpHeaders[HttpHeaders] path !port* scheme
Sleep: !seconds##
TcpSocket: host !port*
PostStart: exec:Exec httpGet:HttpGet sleep:Sleep tcpSocket:TcpSocket
Lifecycle: postStart:PostStart preStop:PostStart stopSignal
Grpc: !port# service
LivenessProbe: exec:Exec failureThreshold# grpc:Grpc httpGet:HttpGet initialDelaySeconds# periodSeconds#
  successThreshold# tcpSocket:TcpSocket terminationGracePeriodSeconds## timeoutSeconds#
Ports: !containerPort# hostIP hostPort# name protocol
ResizePolicy: !resourceName !restartPolicy
Claims: !name request
Resources: claims[Claims]<name;> limits{~} requests{~}
ExitCodes: !operator values[#]
RestartPolicyRules: !action exitCodes:ExitCodes
AppArmorProfile: localhostProfile !type
Capabilities: add[] drop[]
SeLinuxOptions: level role type user
WindowsOptions: gmsaCredentialSpec gmsaCredentialSpecName hostProcess? runAsUserName
SecurityContext: allowPrivilegeEscalation? appArmorProfile:AppArmorProfile capabilities:Capabilities privileged?
  procMount readOnlyRootFilesystem? runAsGroup## runAsNonRoot? runAsUser## seLinuxOptions:SeLinuxOptions
  seccompProfile:AppArmorProfile windowsOptions:WindowsOptions
VolumeDevices: !devicePath !name
VolumeMounts: !mountPath mountPropagation !name readOnly? recursiveReadOnly subPath subPathExpr
Containers: args[] command[] env[Env]<name;> envFrom[EnvFrom] image imagePullPolicy lifecycle:Lifecycle
  livenessProbe:LivenessProbe !name ports[Ports]<containerPort+protocol;> readinessProbe:LivenessProbe
  resizePolicy[ResizePolicy] resources:Resources restartPolicy restartPolicyRules[RestartPolicyRules]
  securityContext:SecurityContext startupProbe:LivenessProbe stdin? stdinOnce? terminationMessagePath
  terminationMessagePolicy tty? volumeDevices[VolumeDevices]<devicePath;> volumeMounts[VolumeMounts]<mountPath;>
  workingDir
Options: name value
DnsConfig: nameservers[] options[Options] searches[]
EphemeralContainers: args[] command[] env[Env]<name;> envFrom[EnvFrom] image imagePullPolicy lifecycle:Lifecycle
  livenessProbe:LivenessProbe !name ports[Ports]<containerPort+protocol;> readinessProbe:LivenessProbe
  resizePolicy[ResizePolicy] resources:Resources restartPolicy restartPolicyRules[RestartPolicyRules]
  securityContext:SecurityContext startupProbe:LivenessProbe stdin? stdinOnce? targetContainerName
  terminationMessagePath terminationMessagePolicy tty? volumeDevices[VolumeDevices]<devicePath;>
  volumeMounts[VolumeMounts]<mountPath;> workingDir
HostAliases: hostnames[] !ip
ImagePullSecrets: name
Os: !name
ReadinessGates: !conditionType
ResourceClaims: !name resourceClaimName resourceClaimTemplateName
SchedulingGroup: podGroupName
SecurityContext2: appArmorProfile:AppArmorProfile fsGroup## fsGroupChangePolicy runAsGroup## runAsNonRoot? runAsUser##
  seLinuxChangePolicy seLinuxOptions:SeLinuxOptions seccompProfile:AppArmorProfile supplementalGroups[##]
  supplementalGroupsPolicy sysctls[HttpHeaders] windowsOptions:WindowsOptions
Tolerations: effect key operator tolerationSeconds## value
TopologySpreadConstraints: labelSelector:LabelSelector matchLabelKeys[] !maxSkew# minDomains# nodeAffinityPolicy
  nodeTaintsPolicy !topologyKey !whenUnsatisfiable
AwsElasticBlockStore: fsType partition# readOnly? !volumeID
AzureDisk: cachingMode !diskName !diskURI fsType kind readOnly?
AzureFile: readOnly? !secretName !shareName
Cephfs: !monitors[] path readOnly? secretFile secretRef:ImagePullSecrets user
Cinder: fsType readOnly? secretRef:ImagePullSecrets !volumeID
Items: !key mode# !path
ConfigMap: defaultMode# items[Items] name optional?
Csi: !driver fsType nodePublishSecretRef:ImagePullSecrets readOnly? volumeAttributes{}
Items2: fieldRef:FieldRef mode# !path resourceFieldRef:ResourceFieldRef
DownwardAPI: defaultMode# items[Items2]
EmptyDir: medium sizeLimit~
Metadata: annotations{} finalizers[] labels{} name namespace
DataSource: apiGroup !kind !name
DataSourceRef: apiGroup !kind !name namespace
Resources2: limits{~} requests{~}
Spec: accessModes[] dataSource:DataSource dataSourceRef:DataSourceRef resources:Resources2 selector:LabelSelector
  storageClassName volumeAttributesClassName volumeMode volumeName
VolumeClaimTemplate: metadata:Metadata !spec:Spec
Ephemeral: volumeClaimTemplate:VolumeClaimTemplate
Fc: fsType lun# readOnly? targetWWNs[] wwids[]
FlexVolume: !driver fsType options{} readOnly? secretRef:ImagePullSecrets
Flocker: datasetName datasetUUID
GcePersistentDisk: fsType partition# !pdName readOnly?
GitRepo: directory !repository revision
Glusterfs: !endpoints !path readOnly?
HostPath: !path type
Image: pullPolicy reference
Iscsi: chapAuthDiscovery? chapAuthSession? fsType initiatorName !iqn iscsiInterface !lun# portals[] readOnly?
  secretRef:ImagePullSecrets !targetPortal
Nfs: !path readOnly? !server
PersistentVolumeClaim: !claimName readOnly?
PhotonPersistentDisk: fsType !pdID
PortworxVolume: fsType readOnly? !volumeID
ClusterTrustBundle: labelSelector:LabelSelector name optional? !path signerName
ConfigMap2: items[Items] name optional?
DownwardAPI2: items[Items2]
PodCertificate: certificateChainPath credentialBundlePath keyPath !keyType maxExpirationSeconds# !signerName
  userAnnotations{}
ServiceAccountToken: audience expirationSeconds## !path
Sources: clusterTrustBundle:ClusterTrustBundle configMap:ConfigMap2 downwardAPI:DownwardAPI2
  podCertificate:PodCertificate secret:ConfigMap2 serviceAccountToken:ServiceAccountToken
Projected: defaultMode# sources[Sources]
Quobyte: group readOnly? !registry tenant user !volume
Rbd: fsType !image keyring !monitors[] pool readOnly? secretRef:ImagePullSecrets user
ScaleIO: fsType !gateway protectionDomain readOnly? !secretRef:ImagePullSecrets sslEnabled? storageMode storagePool
  !system volumeName
Secret: defaultMode# items[Items] optional? secretName
Storageos: fsType readOnly? secretRef:ImagePullSecrets volumeName volumeNamespace
VsphereVolume: fsType storagePolicyID storagePolicyName !volumePath
Volumes: awsElasticBlockStore:AwsElasticBlockStore azureDisk:AzureDisk azureFile:AzureFile cephfs:Cephfs cinder:Cinder
  configMap:ConfigMap csi:Csi downwardAPI:DownwardAPI emptyDir:EmptyDir ephemeral:Ephemeral fc:Fc flexVolume:FlexVolume
  flocker:Flocker gcePersistentDisk:GcePersistentDisk gitRepo:GitRepo glusterfs:Glusterfs hostPath:HostPath image:Image
  iscsi:Iscsi !name nfs:Nfs persistentVolumeClaim:PersistentVolumeClaim photonPersistentDisk:PhotonPersistentDisk
  portworxVolume:PortworxVolume projected:Projected quobyte:Quobyte rbd:Rbd scaleIO:ScaleIO secret:Secret
  storageos:Storageos vsphereVolume:VsphereVolume
PodSpec: activeDeadlineSeconds## affinity:Affinity automountServiceAccountToken? !containers[Containers]<name;>
  dnsConfig:DnsConfig dnsPolicy enableServiceLinks? ephemeralContainers[EphemeralContainers]<name;>
  hostAliases[HostAliases]<ip;> hostIPC? hostNetwork? hostPID? hostUsers? hostname hostnameOverride
  imagePullSecrets[ImagePullSecrets]<name;> initContainers[Containers]<name;> nodeName nodeSelector{} os:Os overhead{~}
  preemptionPolicy priority# priorityClassName readinessGates[ReadinessGates] resourceClaims[ResourceClaims]<name;>
  resources:Resources restartPolicy runtimeClassName schedulerName schedulingGates[Os]<name;>
  schedulingGroup:SchedulingGroup securityContext:SecurityContext2 serviceAccount serviceAccountName setHostnameAsFQDN?
  shareProcessNamespace? subdomain terminationGracePeriodSeconds## tolerations[Tolerations]
  topologySpreadConstraints[TopologySpreadConstraints]<topologyKey+whenUnsatisfiable;> volumes[Volumes]<name;>
OnExitCodes: containerName !operator !values[#]
OnPodConditions: status !type
Rules: !action onExitCodes:OnExitCodes onPodConditions[OnPodConditions]
PodFailurePolicy: !rules[Rules]
Rules2: succeededCount# succeededIndexes
SuccessPolicy: !rules[Rules2]
Template: metadata:Metadata spec:PodSpec
JobSpec: activeDeadlineSeconds## backoffLimit# backoffLimitPerIndex# completionMode completions# managedBy
  manualSelector? maxFailedIndexes# parallelism# podFailurePolicy:PodFailurePolicy podReplacementPolicy
  selector:LabelSelector successPolicy:SuccessPolicy suspend? !template:Template ttlSecondsAfterFinished#
Coordinator: jobIndex## podIndex## !replicatedJob
Rules3: !action<FailJobSet|RestartJobSet|RestartJobSetAndIgnoreMaxRestarts|RestartJob|RestartJobAndIgnoreMaxRestarts>
  !name onJobFailureMessagePatterns[] onJobFailureReasons[] targetReplicatedJobs[]
FailurePolicy: maxRestarts# restartStrategy<Recreate|BlockingRecreate|InPlaceRestart> rules[Rules3]
Network: enableDNSHostnames? publishNotReadyAddresses? subdomain
DependsOn: !name !status<Ready|Complete>
Template2: metadata:Metadata spec:JobSpec
ReplicatedJobs: dependsOn[DependsOn]<name;..5> groupName !name replicas# !template:Template2
StartupPolicy: !startupPolicyOrder<AnyOrder|InOrder>
SuccessPolicy2: !operator<All|Any> targetReplicatedJobs[]
RetentionPolicy: whenDeleted<Delete|Retain>
Conditions: lastProbeTime lastTransitionTime message reason !status !type
ModifyVolumeStatus: !status targetVolumeAttributesClassName
Status: accessModes[] allocatedResourceStatuses{} allocatedResources{~} capacity{~} conditions[Conditions]<type;>
  currentVolumeAttributesClassName modifyVolumeStatus:ModifyVolumeStatus phase
Templates: apiVersion kind metadata:Metadata spec:Spec status:Status
VolumeClaimPolicies: retentionPolicy:RetentionPolicy templates[Templates]<;..50>
JobSetSpec: coordinator:Coordinator failurePolicy:FailurePolicy managedBy network:Network
  replicatedJobs[ReplicatedJobs]<name;> startupPolicy:StartupPolicy successPolicy:SuccessPolicy2 suspend?
  ttlSecondsAfterFinished#<0..> volumeClaimPolicies[VolumeClaimPolicies]<;..50>
AuthOptions: enableK8sTokenAuth? mode<disabled|token> secretName
AutoscalerOptions: args[] command[] env[Env] envFrom[EnvFrom] idleTimeoutSeconds# image imagePullPolicy
  resources:Resources securityContext:SecurityContext upscalingMode<Default|Aggressive|Conservative> version<v1|v2>
  volumeMounts[VolumeMounts]
RedisPassword: value valueFrom:ValueFrom
Storage: accessModes[] claimName deletionPolicy<DeleteWithCluster|Retain> size~ storageClassName subPath
GcsFaultToleranceOptions: backend<redis|rocksdb> externalStorageNamespace redisAddress redisPassword:RedisPassword
  redisUsername:RedisPassword storage:Storage
Ports2: appProtocol name nodePort# !port# protocol targetPort*
ClientIP: timeoutSeconds#
SessionAffinityConfig: clientIP:ClientIP
Spec2: allocateLoadBalancerNodePorts? clusterIP clusterIPs[] externalIPs[] externalName externalTrafficPolicy
  healthCheckNodePort# internalTrafficPolicy ipFamilies[] ipFamilyPolicy loadBalancerClass loadBalancerIP
  loadBalancerSourceRanges[] ports[Ports2]<port+protocol;> publishNotReadyAddresses? selector{} sessionAffinity
  sessionAffinityConfig:SessionAffinityConfig trafficDistribution type
Conditions2: !lastTransitionTime !message observedGeneration##<0..> !reason !status<True|False|Unknown> !type
Ports3: !error !port# !protocol
Ingress: hostname ip ipMode ports[Ports3]
LoadBalancer: ingress[Ingress]
Status2: conditions[Conditions2]<type;> loadBalancer:LoadBalancer
HeadService: apiVersion kind metadata:Metadata spec:Spec2 status:Status2
Tls: hosts[] secretName
IngressOptions: host path pathType<Exact|Prefix|ImplementationSpecific> tls[Tls]
HeadGroupSpec: enableIngress? headService:HeadService ingressOptions:IngressOptions labels{} rayStartParams{}
  resources{} serviceType !template:Template
CollectorOptions: env[Env] image imagePullPolicy resources:Resources
HistoryServerOptions: collectorOptions:CollectorOptions
Ports4: endPort# port* protocol
IpBlock: !cidr except[]
To: ipBlock:IpBlock namespaceSelector:LabelSelector podSelector:LabelSelector
EgressRules: ports[Ports4] to[To]
IngressRules: from[To] ports[Ports4]
Head: egressRules[EgressRules] ingressRules[IngressRules]
WorkerGroups: egressRules[EgressRules] !groupName ingressRules[IngressRules]
NetworkPolicy: head:Head mode<DenyAll|DenyAllIngress|DenyAllEgress> worker:Head workerGroups[WorkerGroups]<groupName;>
TlsOptions: enabled?
UpgradeStrategy: type<Recreate|None>
ScaleStrategy: workersToDelete[]
WorkerGroupSpecs: !groupName idleTimeoutSeconds# labels{} maxReplicas# minReplicas# numOfHosts# priority#
  rayStartParams{} replicas# resources{} scaleStrategy:ScaleStrategy suspend? !template:Template
RayClusterSpec: authOptions:AuthOptions autoscalerOptions:AutoscalerOptions enableInTreeAutoscaling?
  gcsFaultToleranceOptions:GcsFaultToleranceOptions !headGroupSpec:HeadGroupSpec headServiceAnnotations{}
  historyServerOptions:HistoryServerOptions managedBy networkPolicy:NetworkPolicy rayVersion suspend?
  tlsOptions:TlsOptions upgradeStrategy:UpgradeStrategy workerGroupSpecs[WorkerGroupSpecs]
Condition: jobDeploymentStatus<Failed> jobStatus<SUCCEEDED|FAILED> ttlSeconds#<0..>
DeletionRules: !condition:Condition !policy<DeleteCluster|DeleteWorkers|DeleteSelf|DeleteNone>
OnFailure: policy<DeleteCluster|DeleteWorkers|DeleteSelf|DeleteNone>
DeletionStrategy: deletionRules[DeletionRules]<;1..> onFailure:OnFailure onSuccess:OnFailure
SubmitterConfig: backoffLimit#
RayJobSpec: activeDeadlineSeconds# backoffLimit# clusterSelector{} deletionStrategy:DeletionStrategy entrypoint
  entrypointNumCpus* entrypointNumGpus* entrypointResources jobId managedBy metadata{} preRunningDeadlineSeconds#<1..>
  rayClusterSpec:RayClusterSpec runtimeEnvYAML shutdownAfterJobFinishes? submissionMode submitterConfig:SubmitterConfig
  submitterPodTemplate:Template suspend? ttlSecondsAfterFinished#
"""
