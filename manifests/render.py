"""Fills in the ${NAMES} of a recipe's manifests, from the environment and from what a run sets."""

from __future__ import annotations

import difflib
import json
import re
import secrets
import shlex
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from admission import NotAWorkload
from admission.boundary import Boundary, boundary_of, refusals_of
from admission.workload import EXCLUSIVE_TOPOLOGY
from environment import CapacityMode, Environment, PoolGroup, Team
from environment.fleet.node_selector import node_selector
from environment.fleet.values import meant
from environment.kubernetes.team_objects import namespace
from manifests import mesh
from manifests.images import DOCKERFILE, BadDockerfile, reference
from manifests.recipe import shown
from manifests.recipes import KUSTOMIZATION, NAME_REFERENCES, BadManifest, Recipe, all_recipes
from vocabulary import yaml_text
from vocabulary.keys import CPU_GROUP, JOBSET_LABEL, LOCAL_QUEUE, POOL_GROUP_LABEL, POOL_LABEL, SAFE_TO_EVICT_ANNOTATION
from vocabulary.printable import counted, limited, quoted, shortened

__all__ = ["LONGEST_NAME", "BadManifest", "Run", "arguments", "parameters", "render", "rendered", "unique_name"]

# The priority class of the jobs of a team that sets none: other jobs can still go before or behind them by their label.
DEFAULT_PRIORITY = "medium"

# The names of Jobs, pods and Services are made from a run's, and have 63 characters at most. The longest end that this
# environment's fleets and recipes lead to is `-slice-9999-2303-xxxxx` of a pod, 22 characters.
LONGEST_NAME = 40

_ARGUMENTS = "ARGUMENTS"
_SHELL_ARGUMENTS = "SHELL_ARGUMENTS"
_IMAGE = "IMAGE"

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # where PyYAML was built without libyaml: five times as slow

PRESET = "preset"  # the key that chooses one

# A Service selects pods by the name of their JobSet. With this an overlay that renames the JobSet changes that, too.
# https://github.com/kubernetes-sigs/kustomize/blob/master/examples/transformerconfigs/README.md#name-reference-transformer
_SELECTORS = """\
nameReference:
- kind: JobSet
  fieldSpecs:
  - kind: Service
    path: spec/selector/{}
""".format(JOBSET_LABEL.replace("/", r"\/"))

_RANDOM = "abcdefghijklmnopqrstuvwxyz234567"  # base 32, as in RFC 4648, in lower case
_RANDOM_LENGTH = 6
_NAME = re.compile(r"(\$?)\$\{([^}\n]*)\}?")  # $${NAME} is the text ${NAME}; $NAME and $(NAME) are left as they are


@dataclass(frozen=True, kw_only=True)
class Run:
    """One run of a recipe: whose it is, where, and what is set.

    `group` is None for a recipe that runs on the CPU pool. `settings` are those of --set, by key. Without a name, the
    run has that of its recipe. `images` are references by digest, by recipe; the others are named by their tags.
    """

    recipe: Recipe
    environment: Environment
    team: Team
    group: PoolGroup | None = None
    slices: int = 1
    settings: Mapping[str, str] = field(default_factory=dict)
    name: str | None = None
    images: Mapping[str, str] = field(default_factory=dict)


def unique_name(recipe: Recipe) -> str:
    """A name for a run that no other has: the recipe's, and a random end."""
    return f"{recipe.name}-{''.join(secrets.choice(_RANDOM) for _ in range(_RANDOM_LENGTH))}"


def rendered(run: Run) -> dict[str, str]:
    """The text of every manifest of the run, by file name. Raises BadManifest with every mistake."""
    texts, mistakes = _texts(run, within=boundary_of(namespace(run.environment, run.team)))
    if mistakes:
        raise BadManifest(limited(mistakes))
    return texts


def arguments(run: Run) -> dict[str, str]:
    """What the run's program gets as words key=value, in their order, mesh included. Raises BadManifest."""
    return _good_values(run).arguments


def parameters(run: Run) -> dict[str, str]:
    """What fills in the parameters of the run's manifests, by key. Raises BadManifest."""
    return _good_values(run).parameters


def _good_values(run: Run) -> _Values:
    values = _Values(run)
    if values.mistakes:
        raise BadManifest(limited(dict.fromkeys(values.mistakes)))
    return values


def render(environment: Environment, recipes: Iterable[Recipe] | None = None) -> dict[str, str]:
    """A Kustomize base of every recipe for every team and pool group that the team may use and that suits the recipe.

    Each file is by its path, {team}/{group}/{recipe}/{file}. A recipe of the CPU pool is below {team}/cpu. Recipes with
    keys that must be set are left out. A recipe whose image the teams may not use hinders nobody before it is run.
    Raises BadManifest with every mistake of all of them.
    """
    texts: dict[str, str] = {}
    mistakes: dict[str, None] = {}  # a dict keeps their order; most are the same for every team and group
    bases = [recipe for recipe in (all_recipes() if recipes is None else recipes) if not recipe.required]
    for recipe in bases:
        runs = list(_runs(recipe, environment))
        # Values change nothing in the form of a manifest, so one run of the recipe is checked for all: one that has no
        # access to hosts, if there is one.
        checked = min(runs, key=lambda run: run.team.host_access, default=None)
        for run in runs:
            folder = Path(run.team.name, run.group.name if run.group else CPU_GROUP, recipe.name)
            within = Boundary(host_access=run.team.host_access) if run is checked else None
            files, wrong = _texts(run, within=within, where=f"recipe {recipe.name}: ")
            mistakes |= dict.fromkeys(wrong)
            texts |= {str(folder / file): text for file, text in files.items()}
            texts |= {str(folder / file): text for file, text in _for_kustomize(recipe).items()}
    if mistakes:
        raise BadManifest(limited(mistakes))
    return texts


def _texts(run: Run, *, within: Boundary | None, where: str = "") -> tuple[dict[str, str], list[str]]:
    """The text of every manifest of the run, by file name; and every mistake. Those of the run's values begin `where`.

    A manifest that is not YAML, or that a namespace with the boundary `within` refuses, is a mistake.
    """
    values = _Values(run)
    manifests = run.recipe.manifests.items()
    mistakes = [f"{where}{mistake}" for mistake in values.mistakes]
    if values.names:
        mistakes += (
            f"{shown(run.recipe.folder, file)}:{line}"
            for file, text in manifests
            for line in _unknown(text, values.names, run.recipe)
        )
    if within and not mistakes:
        mistakes += list(_not_yaml(run.recipe, values.names)) or list(_refused(run, values.names, within))
    return {file: _filled(text, values.names) for file, text in manifests}, list(dict.fromkeys(mistakes))


def _not_yaml(recipe: Recipe, names: Mapping[str, str]) -> Iterator[str]:
    """A message for each manifest that is not YAML when the names are filled in."""
    for file, text in recipe.manifests.items():
        try:
            # The arguments on one line, so that the lines are those of the file.
            yaml_text.check(_filled(text, {**names, _ARGUMENTS: "[]"}))
        except yaml_text.NotYaml as error:
            yield f"{shown(recipe.folder, file)}:{error.line}: {error}"


def _refused(run: Run, names: Mapping[str, str], within: Boundary) -> Iterator[str]:
    """A message for each thing in a manifest that no team's namespace takes. What cannot be read says so elsewhere."""
    for file, text in run.recipe.manifests.items():
        with suppress(yaml.YAMLError, NotAWorkload):
            for document in yaml.load_all(_filled(text, names), _LOADER):
                if isinstance(document, dict):
                    refusals = refusals_of(document, within)
                    yield from (f"{shown(run.recipe.folder, file)}: {refusal}" for refusal in refusals)


def _runs(recipe: Recipe, environment: Environment) -> Iterator[Run]:
    for team in environment.teams:
        if not recipe.tpu:
            yield Run(recipe=recipe, environment=environment, team=team)
            continue
        for group in environment.groups:
            if group.name in team.pools and not recipe.unsuited(group):
                yield Run(recipe=recipe, environment=environment, team=team, group=group)


def _for_kustomize(recipe: Recipe) -> dict[str, str]:
    """What makes a folder with the manifests of the recipe a Kustomize base, by file name."""
    resources = "".join(f"- {file}\n" for file in recipe.manifests)
    kustomization = f"apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources:\n{resources}"
    if not any(f"{JOBSET_LABEL}: ${{NAME}}" in text for text in recipe.manifests.values()):
        return {KUSTOMIZATION: kustomization}
    configurations = f"configurations:\n- {NAME_REFERENCES}\n"
    return {KUSTOMIZATION: kustomization + configurations, NAME_REFERENCES: _SELECTORS}


class _Values:
    """What a run fills in: `names` by ${NAME}, as they stand in YAML; `arguments` and `parameters` by their keys; and
    every mistake.

    There are no names for a run that cannot be, such as one of more slices than the pool group has.
    """

    def __init__(self, run: Run) -> None:
        self.mistakes = list(_bad_run(run))
        self.arguments: dict[str, str] = {}
        self.parameters: dict[str, str] = {}
        self.names: dict[str, str] = {}
        if self.mistakes:
            return
        try:
            derived = _derived(run)
        except BadDockerfile as bad:
            self.mistakes += str(bad).splitlines()
            return
        values = self._chosen(run, derived)
        self.arguments = {key: values[key] for key in run.recipe.arguments if key in values}
        self.arguments |= self._mesh(run, values)
        self.arguments |= {key: values[key] for key in run.recipe.more_arguments if key in values}
        self.parameters = {key: values.get(key, "") for key in run.recipe.parameters}
        words = [f"{key}={value}" for key, value in self.arguments.items()]
        derived |= {_ARGUMENTS: _flow_list(words), _SHELL_ARGUMENTS: _escaped(shlex.join(words))}
        for key in run.recipe.parameters:
            if key.upper() in derived:
                name = f"${{{key.upper()}}}"
                self.mistakes.append(f"{key}: cannot be a parameter, for {name} is derived; give it another name")
        escaped = {key.upper(): _escaped(value) for key, value in self.parameters.items()}
        self.names = {**escaped, **derived}

    def _chosen(self, run: Run, derived: Mapping[str, str]) -> dict[str, str]:
        """The value of each key that has one: the default, over it the preset's, over that what is set."""
        recipe = run.recipe
        parameters = {**recipe.parameters, **recipe.arguments}
        values = {key: parameter.default for key, parameter in parameters.items() if parameter.default is not None}
        if run.group and run.group.capacity is CapacityMode.SPOT:
            values |= {key: parameter.on_spot for key, parameter in parameters.items() if parameter.on_spot is not None}
        preset = run.settings.get(PRESET, recipe.preset)
        if preset is not None and preset in recipe.presets:
            values |= recipe.presets[preset]
        elif preset is not None:
            has = meant(preset, recipe.presets) if recipe.presets else f"; recipe {recipe.name} has no presets"
            self.mistakes.append(f"{PRESET}: there is no preset {quoted(preset)}{has}")
        for key, text in run.settings.items():
            if key in recipe.keys:
                try:
                    values[key] = recipe.value(key, text)
                except ValueError as error:
                    self.mistakes.append(f"{key}: {quoted(text)} {error}")
            elif key != PRESET:
                self.mistakes.append(
                    f"{quoted(key)[1:-1]}: is not a key of recipe {recipe.name}{_meant_key(key, recipe)}"
                )
        for key, example in recipe.required.items():
            if not values.get(key):
                self.mistakes.append(f"{key}: has no default; set it, such as {key}={example}")
        for key, value in values.items():
            self.mistakes += (f"{key}: {line.partition(': ')[2]}" for line in _unknown(value, derived, recipe))
        return {key: _filled(value, derived) for key, value in values.items()}

    def _mesh(self, run: Run, values: Mapping[str, str]) -> Iterator[tuple[str, str]]:
        """Every key of the mesh that is set, and the one that is what is left, with its factor."""
        if run.group is None:
            return
        within, across = run.recipe.mesh.within_slice, run.recipe.mesh.across_slices
        slice_ = run.group.slice
        for part, total, what in (
            (within, mesh.devices(slice_), mesh.devices_text(slice_)),
            (across, run.slices, f"the {counted(run.slices, 'slice')} of this run"),
        ):
            if part:
                try:
                    factors = mesh.factors(part, values, total, what)
                except mesh.BadMesh as bad:
                    self.mistakes += str(bad).splitlines()
                else:
                    yield from (
                        (key, str(factor))
                        for key, factor in factors.items()
                        if key in values or key == part.rest or factor > 1
                    )


def _bad_run(run: Run) -> Iterator[str]:
    recipe, group = run.recipe, run.group
    if recipe.tpu and group is None:
        yield f"recipe {recipe.name} runs on TPUs; name one of the pool groups {', '.join(run.team.pools)}"
    elif group and not recipe.tpu:
        yield f"recipe {recipe.name} runs on the CPU pool; name no pool group, not '{group.name}'"
    elif group and group.name not in run.team.pools:
        yield f"team {run.team.name} may not use pool group '{group.name}'; it may use {', '.join(run.team.pools)}"
    elif group and (why := recipe.unsuited(group)):
        yield f"{why}; {_suited(run)}"
    most = recipe.most_slices(group) if group else 1
    if not 1 <= run.slices <= most:
        yield f"slices: '{run.slices}' is not possible: {_limit(run)}; use 1" + (f" to {most}" if most > 1 else "")
    if run.name is not None and not re.fullmatch(rf"[a-z]([a-z0-9-]{{0,{LONGEST_NAME - 2}}}[a-z0-9])?", run.name):
        yield (
            f"name: {quoted(run.name)} cannot name a run; use 1 to {LONGEST_NAME} lower-case letters, digits and "
            "hyphens, the first a letter, no hyphen last"
        )


def _limit(run: Run) -> str:
    """Why the run cannot have more slices."""
    recipe, group = run.recipe, run.group
    if group is None:
        return "it runs on the CPU pool"
    if recipe.joins(group) or run.slices < 1:
        return f"pool group {group.name} has {counted(group.slices, 'slice')}"
    return (
        f"recipe {recipe.name} makes one program of its slices, and GKE joins only slices of several hosts; a slice of "
        f"pool group {group.name} ({group.slice.tpu_type}) has 1"
    )


def _suited(run: Run) -> str:
    """What to do where the recipe does not run on the run's pool group."""
    others = (group for group in run.environment.groups if group.name in run.team.pools)
    names = [group.name for group in others if not run.recipe.unsuited(group)]
    if names:
        return f"use pool group {' or '.join(names)}"
    return f"no pool group of team {run.team.name} suits it; add one to the fleet (docs/fleet.md)"


def _derived(run: Run) -> dict[str, str]:
    """What the environment says, by ${NAME}; of a run without TPUs nothing about them. Raises BadDockerfile."""
    environment, recipe = run.environment, run.recipe
    names = {
        "NAME": run.name or recipe.name,
        "NAMESPACE": run.team.name,
        "QUEUE": LOCAL_QUEUE,
        "PRIORITY": run.team.priority or DEFAULT_PRIORITY,
        "SERVICE_ACCOUNT": environment.names.team_account,
        "BUCKET": environment.names.bucket(run.team.name),
        **_node_selectors(run),
        "SAFE_TO_EVICT": f'{SAFE_TO_EVICT_ANNOTATION}: "false"' if environment.settings.autopilot else "",
        "POOL_GROUP": run.group.name if run.group else CPU_GROUP,
        "PROJECT_ID": environment.settings.project_id,
        "REGION": environment.settings.region,
        "TENSORBOARD_REGION": environment.settings.tensorboard_region,
        "TENSORBOARD": environment.names.tensorboard,
    }
    if not environment.settings.autopilot:  # whose nodes have no label of ours
        names["POOL_GROUP_LABEL"] = POOL_GROUP_LABEL
    names |= _images(run)
    if run.group is None:
        return names
    slice_ = run.group.slice
    return names | {
        "TPU_TYPE": slice_.tpu_type,
        "ACCELERATOR": slice_.accelerator,
        "TOPOLOGY": slice_.topology,
        "HOSTS": str(slice_.hosts),
        "CHIPS_PER_HOST": str(slice_.chips_per_host),
        "CHIPS": str(slice_.chips),
        "GENERATION": slice_.generation,
        "DEVICES": str(mesh.devices(slice_)),
        "SLICES": str(run.slices),
        "GROUP_SLICES": str(run.group.slices),
        # Slices of one host may share a node pool, which one job would keep the others from.
        "EXCLUSIVE_TOPOLOGY": f"{EXCLUSIVE_TOPOLOGY}: {POOL_LABEL}" if slice_.hosts > 1 else "",
    }


def _node_selectors(run: Run) -> dict[str, str]:
    """A label a line: of the nodes of the run's pool group, and of those of the CPU pool. Autopilot has no such pool,
    but a node for every pod.
    """
    autopilot = run.environment.settings.autopilot
    cpu = "{}" if autopilot else f"{POOL_GROUP_LABEL}: {CPU_GROUP}"
    labels = node_selector(run.group, autopilot=autopilot) if run.group else {}
    own = "\n".join(f"{key}: {json.dumps(value)}" for key, value in labels.items())
    return {"NODE_SELECTOR": own or cpu, "CPU_NODE_SELECTOR": cpu}


def _images(run: Run) -> dict[str, str]:
    """The image of the recipe, if it has a Dockerfile, and those of the recipes that it names. Raises BadDockerfile."""
    recipe = run.recipe
    folders = {f"IMAGE_{name.upper().replace('-', '_')}": recipe.folder.with_name(name) for name in recipe.images}
    if recipe.name in run.images or (recipe.folder / DOCKERFILE).exists():
        folders[_IMAGE] = recipe.folder
    return {name: run.images.get(folder.name) or reference(run.environment, folder) for name, folder in folders.items()}


def _meant_key(key: str, recipe: Recipe) -> str:
    keys = [*recipe.keys, *([PRESET] if recipe.presets else [])]
    if not keys:
        return "; it has none"
    return meant(key, keys, instead=f"; `tpuenv render {recipe.name} --keys` lists them")


def _unknown(text: str, names: Mapping[str, str], recipe: Recipe) -> Iterator[str]:
    """A message for each ${NAME} that does not exist, after the number of its line."""
    for match in _NAME.finditer(text):
        dollar, name = match.groups()
        if not dollar and name not in names:
            nearest = difflib.get_close_matches(name.upper()[:64], names, n=1, cutoff=0.6)
            hint = f"; did you mean ${{{nearest[0]}}}?" if nearest else ";"
            written = shortened(match[0], longest=60)
            line = text.count("\n", 0, match.start()) + 1
            if name == _IMAGE:
                yield f"{line}: {written} needs a {DOCKERFILE} in {shown(recipe.folder)}, from which the image is built"
                continue
            yield (
                f"{line}: {written} is not a name that is filled in{hint} there are {', '.join(sorted(names))}; "
                f"write ${written} where the manifest itself needs that text"
            )


def _filled(text: str, names: Mapping[str, str]) -> str:
    def value(match: re.Match[str]) -> str:
        if match[1]:
            return match[0][1:]
        line = text[text.rfind("\n", 0, match.start()) + 1 : match.start()]
        indent = len(line) - len(line.lstrip(" "))
        return names.get(match[2], "").replace("\n", "\n" + " " * indent)

    return _NAME.sub(value, text)


def _escaped(text: str) -> str:
    """As it stands between the quotation marks of the manifest: a JSON text is one of YAML."""
    return json.dumps(text, ensure_ascii=False)[1:-1]


def _flow_list(words: Iterable[str]) -> str:
    """A YAML list of a word a line; `_filled` indents the lines."""
    quoted_words = [f"  {json.dumps(word, ensure_ascii=False)}" for word in words]
    return "[]" if not quoted_words else "[\n" + ",\n".join(quoted_words) + "]"
