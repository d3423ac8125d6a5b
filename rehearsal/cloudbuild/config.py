"""A Cloud Build file: read, and refused with the file's line and key wherever it says what is not supported here.

https://cloud.google.com/build/docs/build-config-file-schema. A key that the real Cloud Build knows and this does not is
an error as well: what is not executed must not pass as if it were. Stricter than Cloud Build, every substitution must
be declared and used, whatever options.substitutionOption says (it is fixed at MUST_MATCH, the default of builds that no
trigger starts).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from rehearsal.cloudbuild.substitutions import BUILT_IN, OWN, resolved, substituted, used
from vocabulary.yaml_text import NotYaml, Value, parse

# Of a build that says none: one hour.
TIMEOUT_SECONDS = 3600.0
_LONGEST_SECONDS = 24 * 3600.0
LOGGED = "CLOUD_LOGGING_ONLY"  # in options.logging
_START = "-"  # in waitFor: the start of the build
_TEXT = "tag:yaml.org,2002:str"
_FLAG = "tag:yaml.org,2002:bool"
_DURATION = re.compile(r"(\d+(?:\.\d{1,9})?)s")

# Known to Cloud Build and refused here, with the reason. Any other key is unknown to both.
_REFUSED = {
    "allowFailure": "a step that fails must fail the build",
    "allowExitCodes": "a step that fails must fail the build",
    "script": "write it into a program of the repository and call that",
    "serviceAccount": "a build runs as the account of its trigger",
    # Cloud Build makes no substitutions in it: GoogleCloudPlatform/cloud-builders issue 280
    "logsBucket": "write options: {logging: CLOUD_LOGGING_ONLY}",
}


class NotABuild(Exception):
    """All that is wrong with a file, a line each."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = list(problems)


@dataclass(frozen=True, kw_only=True)
class Step:
    """A step. `wait_for` is None for "all steps before", empty for "the start of the build"; `timeout` is seconds."""

    number: int
    name: str
    id_: str = ""
    entrypoint: str = ""
    args: tuple[str, ...] = ()
    env: tuple[str, ...] = ()
    dir_: str = ""
    wait_for: tuple[str, ...] | None = None
    timeout: float | None = None
    where: str = ""  # its image, as problems name it: file:line: key

    @property
    def label(self) -> str:
        """What the build's log calls it."""
        return f"Step #{self.number} - {self.id_!r}" if self.id_ else f"Step #{self.number}"

    def texts(self) -> Iterator[str]:
        """All in which substitutions are made."""
        yield from (self.name, self.entrypoint, self.dir_, *self.args, *self.env)


@dataclass(frozen=True, kw_only=True)
class Config:
    """A whole file. `timeout` is seconds; `substitutions` are the declared ones with their defaults."""

    file: str
    steps: tuple[Step, ...]
    timeout: float = TIMEOUT_SECONDS
    env: tuple[str, ...] = ()
    logging: str = ""
    images: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    dynamic: bool = False
    substitutions: Mapping[str, str] = field(default_factory=dict)
    declared_at: str = ""  # its substitutions, as problems name them: file:line

    def texts(self) -> Iterator[str]:
        """All in which substitutions are made."""
        for step in self.steps:
            yield from step.texts()
        yield from (*self.env, *self.images, *self.tags)

    def filled(self, given: Mapping[str, str], built_in: Mapping[str, str]) -> Config:
        """The file for one build, with what its trigger gives. Raises NotABuild for a substitution it does not know."""
        unknown = sorted(given.keys() - self.substitutions.keys())
        if unknown:
            raise NotABuild(
                [f"{self.declared_at}: substitutions: {name} is given and not declared" for name in unknown]
            )
        try:
            values = resolved({**self.substitutions, **given}, built_in, dynamic=self.dynamic)
        except ValueError as error:
            raise NotABuild([f"{self.file}: substitutions.{error}: uses itself"]) from None

        def fill(texts: Sequence[str]) -> tuple[str, ...]:
            return tuple(substituted(text, values) for text in texts)

        steps = tuple(
            replace(
                step,
                name=substituted(step.name, values),
                entrypoint=substituted(step.entrypoint, values),
                args=fill(step.args),
                env=fill(step.env),
                dir_=substituted(step.dir_, values),
            )
            for step in self.steps
        )
        return replace(
            self,
            steps=steps,
            env=fill(self.env),
            images=fill(self.images),
            tags=fill(self.tags),
            substitutions=values,
        )


def read(path: Path) -> Config:
    """The file's build. Raises NotABuild."""
    config, problems = parse_file(path, name=path.name)
    if problems:
        raise NotABuild(problems)
    return config


def parse_file(path: Path, *, name: str) -> tuple[Config, list[str]]:
    """What of the file can be understood, and all that is wrong with it; `name` is what problems call the file."""
    reader = _Reader(name)
    nothing = Config(file=name, steps=())
    try:
        return reader.config(parse(path.read_text(encoding="utf-8"))), reader.problems
    except NotYaml as error:
        return nothing, [f"{name}:{error.line}: the file {error}"]
    except UnicodeDecodeError:
        return nothing, [f"{name}: is not text in UTF-8"]
    except OSError as error:
        return nothing, [f"{name}: cannot be read: {error.strerror or error}"]


class _Reader:
    """Reads values, and writes down what is wrong with them."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.problems: list[str] = []

    def config(self, root: Value) -> Config:
        fields = self._fields(root, ("steps", "timeout", "options", "substitutions", "images", "tags"))
        steps = self._steps(fields.get("steps"), root)
        timeout = self._seconds(fields.get("timeout")) or TIMEOUT_SECONDS
        options = self._options(fields.get("options"))
        config = Config(
            file=self.file,
            steps=steps,
            timeout=timeout,
            env=self._env(options.get("env")),
            logging=self._text(options.get("logging")),
            images=self._texts(fields.get("images")),
            tags=self._texts(fields.get("tags")),
            dynamic=self._flag(options.get("dynamicSubstitutions")),
            substitutions=self._substitutions(fields.get("substitutions")),
            declared_at=f"{self.file}:{fields.get('substitutions', root).line}",
        )
        for step in steps:
            if step.timeout and step.timeout > timeout:
                self._wrong(root, f"{step.label} may take {step.timeout:g} s and the build only {timeout:g} s")
        self._check_substitutions(config, fields.get("substitutions") or root)
        return config

    def _options(self, value: Value | None) -> dict[str, Value]:
        fields = self._fields(value, ("logging", "substitutionOption", "dynamicSubstitutions", "env")) if value else {}
        for key, supported in (("logging", (LOGGED, "GCS_ONLY")), ("substitutionOption", ("MUST_MATCH",))):
            if key in fields and self._text(fields[key]) not in supported:
                self._wrong(fields[key], f"only {' and '.join(supported)} is supported")
        return fields

    def _steps(self, value: Value | None, root: Value) -> tuple[Step, ...]:
        items = value.items if value else None
        if not items:
            self._wrong(value or root, "there are no steps")
            return ()
        steps: list[Step] = []
        for number, item in enumerate(items):
            step_value = replace(item, path=f"steps[{number}]")
            steps.append(self._step(number, step_value, {step.id_ for step in steps}))
        return tuple(steps)

    def _step(self, number: int, item: Value, before: set[str]) -> Step:
        keys = ("name", "id", "entrypoint", "args", "env", "dir", "waitFor", "timeout")
        fields = self._fields(item, keys)
        id_ = self._text(fields.get("id"))
        if "name" not in fields:
            self._wrong(item, "names no image")
        if id_ and (id_ in before or id_ == _START):
            self._wrong(fields["id"], f"{id_!r} is the id of a step before, or reserved")
        waits = self._texts(fields.get("waitFor"))
        for other in waits:
            if other != _START and other not in before:
                self._wrong(fields["waitFor"], f"no step before has the id {other!r}")
        folder = self._text(fields.get("dir"))
        if folder.startswith("/") or ".." in Path(folder).parts:
            self._wrong(fields["dir"], "only folders of the workspace are supported")
        return Step(
            number=number,
            name=self._text(fields.get("name")),
            id_=id_,
            entrypoint=self._text(fields.get("entrypoint")),
            args=self._texts(fields.get("args")),
            env=self._env(fields.get("env")),
            dir_=folder,
            # An empty list is as good as none.
            wait_for=tuple(other for other in waits if other != _START) if waits else None,
            timeout=self._seconds(fields.get("timeout")),
            where=self._place(fields.get("name", item)),
        )

    def _check_substitutions(self, config: Config, where: Value) -> None:
        values = config.substitutions.values()
        seen = {name for text in config.texts() for name in used(text)}
        inside = {name for text in values for name in used(text)}
        if any("$" in text for text in values) and not config.dynamic:
            self._wrong(where, "a value has a $ in it, which needs options.dynamicSubstitutions: true")
        for name in sorted(seen | inside):
            if not name:
                self._wrong(where, "somewhere in the file a $ begins no substitution; a plain one is written $$")
            elif name not in BUILT_IN and name not in config.substitutions:
                self._wrong(where, f"{name} is used and not declared")
        for name in sorted(config.substitutions.keys() - seen - inside):
            self._wrong(where, f"{name} is declared and not used")

    def _substitutions(self, value: Value | None) -> dict[str, str]:
        out = {}
        for name, inner in self._pairs(value):
            if not OWN.fullmatch(name):
                self._wrong(inner, "own substitutions are named _LIKE_THIS: underscores, capital letters, digits")
            out[name] = self._text(inner)
        return out

    def _env(self, value: Value | None) -> tuple[str, ...]:
        entries = self._texts(value)
        for entry in entries:
            if value and "=" not in entry:
                self._wrong(value, f"{entry!r} is not NAME=VALUE")
        return entries

    def _fields(self, value: Value | None, known: Sequence[str]) -> dict[str, Value]:
        """The values of a mapping's known keys; every other key is a problem."""
        out = {}
        for name, inner in self._pairs(value):
            if name in known:
                out[name] = inner
            else:
                self._wrong(inner, f"is not supported by the rehearsal; {_REFUSED.get(name, 'remove it')}")
        return out

    def _pairs(self, value: Value | None) -> list[tuple[str, Value]]:
        if value is None:
            return []
        if value.pairs is None:
            self._wrong(value, "is not a mapping of keys to values")
            return []
        names = [name for name, _ in value.pairs]
        for name in sorted({name for name in names if names.count(name) > 1}):
            self._wrong(value, f"{name} is there twice")
        return value.pairs

    def _text(self, value: Value | None) -> str:
        return self._scalar(value, _TEXT, "text; put it in quotes")

    def _flag(self, value: Value | None) -> bool:
        return self._scalar(value, _FLAG, "true or false").lower() == "true"

    def _scalar(self, value: Value | None, tag: str, words: str) -> str:
        if value is None:
            return ""
        if value.text is None or value.node.tag != tag:
            self._wrong(value, f"is not {words}")
            return ""
        return value.text

    def _texts(self, value: Value | None) -> tuple[str, ...]:
        if value is None:
            return ()
        if value.items is None:
            self._wrong(value, "is not a list")
            return ()
        return tuple(self._text(item) for item in value.items)

    def _seconds(self, value: Value | None) -> float | None:
        if value is None:
            return None
        match = _DURATION.fullmatch(self._text(value))
        if match is None or not 0 < float(match[1]) <= _LONGEST_SECONDS:
            self._wrong(value, "is not a time such as 600s, of at most 86400s")
            return None
        return float(match[1])

    def _wrong(self, value: Value, message: str) -> None:
        self.problems.append(f"{self._place(value)}: {message}")

    def _place(self, value: Value) -> str:
        return f"{self.file}:{value.line}: {value.path}" if value.path else f"{self.file}:{value.line}"
