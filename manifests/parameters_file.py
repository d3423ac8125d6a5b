"""parameters.yaml -> the keys that --set takes: what a recipe says of itself.

    summary: One line.                      # what the lists of recipes show
    tpu: false                              # it runs on the CPU pool; default true
    generations: [v5e, v6e]                 # of TPUs that it runs on; default all
    hosts: 1                                # of the slices that it runs on; default any number
    multislice: true                        # all slices of a run are one program; default false
    images: [tensorboard]                   # recipes whose images the manifests use as ${IMAGE_TENSORBOARD}
    parameters:                             # of the manifests, as ${MAX_RESTARTS}
      max_restarts: {default: 10, kind: count, help: How often a failed run starts again}
      source: {required: true, example: "gs://a/b", kind: text, help: What is copied}
    arguments:                              # of the program, as the words key=value in ${ARGUMENTS}
      steps: {default: 200, kind: count, least: 1, help: How many steps}
    more_arguments: keys.txt                # a file with keys of the program, one a line: those not described here
    mesh:                                   # arguments whose product is the devices of a slice, the slices of a run
      within_slice: {keys: [ici_data, ici_model], rest: ici_data}
      across_slices: {keys: [dcn_data, dcn_model], rest: dcn_data}
    presets:                                # values of several keys, for --set preset=NAME
      large: {steps: 1000}
    preset: large                           # the preset where none is chosen

Kinds are count and number, both with `least: 1` and `most: 100` where there are bounds, text, flag, and choice with
`choices: [...]`. An argument without a default is left out where
it is not set. A default may name what is derived: "gs://${BUCKET}/data". `on_spot: 25` is the default on spot slices.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from environment.fleet.reader import Reader
from environment.fleet.values import meant, one_of, true_or_false, whole
from environment.tpu_catalogue import GENERATIONS
from manifests.mesh import Mesh, MeshPart
from manifests.parameters import BOUNDED, KINDS, Parameter, text_value
from manifests.recipe import Recipe
from vocabulary.printable import quoted
from vocabulary.text_file import Unreadable, read_text
from vocabulary.yaml_text import NotYaml, Value, parse

_KEY = "[A-Za-z][A-Za-z0-9_]*"
_PRESET = "preset"  # chooses one, so it is no key of a recipe
_RECIPE_KEYS = (
    *("summary", "tpu", "generations", "hosts", "multislice", "images", "parameters", "arguments"),
    *("more_arguments", "mesh", "presets", "preset"),
)
_PARAMETER_KEYS = ("default", "on_spot", "required", "example", "kind", "help", "choices", "least", "most")
_MOST = 999_999_999  # as a bound of a value


def described(recipe: Recipe, file: Path, shown: str) -> tuple[Recipe | None, list[str]]:
    """The recipe as its file describes it, None if there is a mistake; and the mistakes, which begin with `shown`."""
    reader = Reader(name=shown)
    try:
        root = parse(read_text(file, holds="what a recipe takes"))
    except Unreadable as error:
        return None, [f"{shown}: {error}"]
    except NotYaml as error:
        return None, [f"{shown}:{error.line}: {error}"]
    complete = _Parser(file, reader).recipe(root, recipe)
    mistakes = [f"{problem.keys[0]}: {problem.message}" for problem in reader.problems]
    return (None if mistakes else complete), mistakes


class _Parser:
    """Collects the mistakes of one file with their lines."""

    def __init__(self, file: Path, reader: Reader) -> None:
        self._file = file
        self._reader = reader

    def recipe(self, root: Value, undescribed: Recipe) -> Recipe:
        """The recipe as the file describes it; what has a mistake is left out."""
        reader = self._reader
        values = reader.known(reader.mapping(root, ", ".join(_RECIPE_KEYS)), _RECIPE_KEYS)
        more_file, more = self._more(values.get("more_arguments"))
        recipe = replace(
            undescribed,
            summary=(reader.parsed(values["summary"], text_value) or "") if "summary" in values else "",
            tpu=reader.parsed(values["tpu"], true_or_false) is not False if "tpu" in values else True,
            generations=self._generations(values.get("generations")),
            hosts=(reader.parsed(values["hosts"], whole(1, _MOST)) or 0) if "hosts" in values else 0,
            multislice=bool("multislice" in values and reader.parsed(values["multislice"], true_or_false)),
            images=tuple(reader.listed(values["images"], text_value)) if "images" in values else (),
            parameters=self._parameters(values.get("parameters"), argument=False),
            arguments=self._parameters(values.get("arguments"), argument=True),
            more_arguments=more,
            more_arguments_file=more_file,
            mesh=self._mesh(values.get("mesh")),
        )
        self._check_keys(root, recipe)
        if recipe.mesh.keys and not recipe.tpu:
            reader.complain(values["mesh"], "divides TPUs, and the recipe has tpu: false; remove one of them")
        for key in ("generations", "hosts", "multislice"):
            if key in values and not recipe.tpu:
                reader.complain(values[key], "is about TPUs, and the recipe has tpu: false; remove one of them")
        others = {*recipe.parameters, *recipe.arguments, *recipe.mesh.keys}
        recipe = replace(recipe, more_arguments=tuple(key for key in recipe.more_arguments if key not in others))
        presets = self._presets(values.get("presets"), recipe)
        preset = reader.parsed(values["preset"], text_value) if "preset" in values else None
        if preset is not None and preset not in presets:
            reader.complain(values["preset"], f"there is no preset {quoted(preset)}{meant(preset, presets)}")
        return replace(recipe, presets=presets, preset=preset)

    def _generations(self, value: Value | None) -> tuple[str, ...]:
        return tuple(self._reader.listed(value, one_of("generation of TPUs", GENERATIONS))) if value else ()

    def _parameters(self, value: Value | None, *, argument: bool) -> dict[str, Parameter]:
        parameters = {}
        for key, inner in self._reader.mapping(value, "keys, each with its kind and help").items() if value else ():
            values = self._reader.known(self._reader.mapping(inner, ", ".join(_PARAMETER_KEYS)), _PARAMETER_KEYS)
            parameter = self._parameter(inner, values) if values else None
            if parameter is None:
                continue
            parameters[key] = parameter
            if parameter.required and (parameter.default is not None or parameter.example is None):
                self._reader.complain(inner, "is required; give it an example and no default")
            elif not argument and not parameter.required and parameter.default is None:
                self._reader.complain(inner, "has no default; give it one, or required: true and an example")
        return parameters

    def _parameter(self, place: Value, values: Mapping[str, Value]) -> Parameter | None:
        reader = self._reader
        if not {"kind", "help"} <= values.keys():
            reader.complain(place, f"needs a kind, which is one of {', '.join(KINDS)}, and a line of help")
            return None
        kind = reader.parsed(values["kind"], one_of("kind", KINDS))
        help_ = reader.parsed(values["help"], text_value)
        choices = tuple(reader.listed(values["choices"], text_value)) if "choices" in values else ()
        required = reader.parsed(values["required"], true_or_false) if "required" in values else False
        if kind is None or help_ is None or required is None:
            return None
        if (kind == "choice") != bool(choices):
            reader.complain(place, "has choices if and only if its kind is choice; add them, or remove them")
            return None
        least, most = (
            reader.parsed(values[key], whole(0, _MOST)) if key in values else None for key in ("least", "most")
        )
        if kind not in BOUNDED and {"least", "most"} & values.keys():
            reader.complain(place, f"has least or most, and its kind is not {' or '.join(BOUNDED)}; remove them")
            return None
        parameter = Parameter(kind=kind, help=help_, required=required, choices=choices, least=least, most=most)
        default, on_spot, example = (
            reader.parsed(values[key], parameter.value) if key in values else None
            for key in ("default", "on_spot", "example")
        )
        if "on_spot" in values and "default" not in values:
            reader.complain(place, "has on_spot and no default; give it one")
        return replace(parameter, default=default, on_spot=on_spot, example=example)

    def _more(self, value: Value | None) -> tuple[str, tuple[str, ...]]:
        """The name of the file and its keys."""
        name = self._reader.parsed(value, text_value) if value else None
        if value is None or name is None:
            return "", ()
        try:
            keys = read_text(self._file.parent / name, holds="a key a line").split()
        except Unreadable as error:
            self._reader.complain(value, f"{quoted(name)}: {error}")
            return name, ()
        if bad := next((key for key in keys if not re.fullmatch(_KEY, key)), None):
            self._reader.complain(value, f"{quoted(name)}: {quoted(bad)} is no key; write one a line")
        return name, tuple(dict.fromkeys(keys))

    def _mesh(self, value: Value | None) -> Mesh:
        reader = self._reader
        if value is None:
            return Mesh()
        values = reader.known(reader.mapping(value, "within_slice, across_slices"), ("within_slice", "across_slices"))
        parts: dict[str, MeshPart] = {}
        for name, inner in values.items():
            part = reader.known(reader.mapping(inner, "keys and rest"), ("keys", "rest"))
            keys = tuple(reader.listed(part["keys"], text_value)) if "keys" in part else ()
            rest = reader.parsed(part["rest"], text_value) if "rest" in part else None
            if rest is not None and rest in keys:
                parts[name] = MeshPart(keys=keys, rest=rest)
            else:
                reader.complain(inner, "needs keys, and rest, which is one of them")
        return Mesh(**parts)

    def _check_keys(self, root: Value, recipe: Recipe) -> None:
        """No key may be there twice, be called `preset`, or be more than a word."""
        groups = (recipe.parameters, recipe.arguments, recipe.mesh.keys)
        keys = [key for group in groups for key in group]
        for key in dict.fromkeys(keys):
            if not re.fullmatch(_KEY, key):
                self._reader.complain(root, f"{quoted(key)} cannot be a key; write letters, digits and underscores")
            elif key == _PRESET:
                self._reader.complain(root, "no key can be called 'preset', which chooses one of the presets")
            elif keys.count(key) > 1:
                self._reader.complain(root, f"the key {quoted(key)} is there {keys.count(key)} times; keep one")
        names = [key.upper() for key in recipe.parameters]
        if twice := [key for key in recipe.parameters if names.count(key.upper()) > 1]:
            self._reader.complain(root, f"parameters {' and '.join(twice)} are the same ${{NAME}}; rename one")

    def _presets(self, value: Value | None, recipe: Recipe) -> dict[str, dict[str, str]]:
        presets: dict[str, dict[str, str]] = {}
        for name, inner in self._reader.mapping(value, "presets, each with its values").items() if value else ():
            presets[name] = {}
            for key, chosen in self._reader.known(self._reader.mapping(inner, "values by key"), recipe.keys).items():
                parsed = self._reader.parsed(chosen, partial(recipe.value, key))
                presets[name][key] = parsed or ""
        return presets
