"""Everything that is applied without being shown is a part of the recorded plan that was not done before. The model:
people change the cloud by hand, applies stop anywhere, and other commits are deployed in between.
"""

from __future__ import annotations

from dataclasses import replace

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from tests.apply_model import HALF, KILLED, WHOLE, Attributes, Part, Terraform
from tests.examples import examples
from tpuenv.review.changes import read
from tpuenv.review.comparison import unreviewed
from tpuenv.review.records import Record, parse

COMMITS = ("one", "two")
NAMES = ("a", "b", "c")
END = 99

commits = st.sampled_from(COMMITS)
attributes = st.fixed_dictionaries({"kind": st.integers(0, 1), "size": st.integers(0, 2), "mark": st.integers(1, 2)})
configs = st.dictionaries(st.sampled_from(NAMES), attributes, max_size=3)
stops = st.tuples(st.integers(0, 4) | st.just(END), st.sampled_from((WHOLE, HALF, KILLED)))


class Approvals(RuleBasedStateMachine):
    """Pull requests record, deploys apply as `tpuenv apply` does. `left`: the parts of a record that may be applied."""

    @initialize(one=configs, two=configs)
    def begin(self, one: dict[str, Attributes], two: dict[str, Attributes]) -> None:
        self.terraform = Terraform()
        self.configs = dict(zip(COMMITS, (one, two), strict=True))
        self.records: dict[str, Record] = {}
        self.left: dict[str, set[Part]] = {}
        self.unfinished = ""

    def record(self, commit: str) -> None:
        config = self.configs[commit]
        changes = read(self.terraform.plan(config), salt="")
        self.records[commit] = Record(stack="s", commit=commit, digest=commit, terraform="1", changes=changes)
        self.left[commit] = self.terraform.parts(config)

    @rule(commit=commits)
    def pull_request(self, commit: str) -> None:
        if commit not in self.records:
            self.record(commit)

    @rule(commit=commits, stop=stops)
    def deploy(self, commit: str, stop: tuple[int, str]) -> None:
        config = self.configs[commit]
        now = read(self.terraform.plan(config), salt="")
        if now.empty:
            self.unfinished = ""
            return
        record = self.records.get(commit)
        if unreviewed(record, now, unfinished=self.unfinished == commit):
            self.record(commit)
            return
        assert record is not None
        assert self.terraform.parts(config) <= self.left[commit]
        for other, its in self.records.items():
            if other != commit and its.begun:
                self.left[other] = set()
        self.records[commit] = parse(replace(record, begun=True).text, place="")
        self.unfinished = commit
        steps, how = stop
        half_made = set(self.terraform.half_made)
        self.left[commit] -= set(self.terraform.apply(config, steps=steps, how=how))
        self.left[commit] |= {("remove half made", id_) for id_ in self.terraform.half_made - half_made}
        if steps == END:
            self.unfinished = ""
            self.left[commit] = set()

    @rule(name=st.sampled_from(NAMES), values=attributes)
    def change_by_hand(self, name: str, values: Attributes) -> None:
        """Also what a killed build made, which is in no state yet."""
        for id_ in self.terraform.cloud:
            if self.terraform.names[id_] == name:
                self.terraform.cloud[id_] = dict(values)

    @rule(name=st.sampled_from(NAMES))
    def delete_by_hand(self, name: str) -> None:
        self.terraform.cloud.pop(self.terraform.state.get(name, (0, {}))[0], None)

    @rule(commit=commits)
    def recover(self, commit: str) -> None:
        """`tpuenv recover` imports what a killed build made."""
        known = {id_ for id_, _ in self.terraform.state.values()}
        for id_, values in self.terraform.cloud.items():
            name = self.terraform.names[id_]
            if (
                id_ not in known
                and id_ not in self.terraform.deposed.values()
                and name not in self.terraform.state
                and name in self.configs[commit]
            ):
                self.terraform.state[name] = (id_, dict(values))

    @rule()
    def destroy(self) -> None:
        self.unfinished = ""
        for id_, _ in self.terraform.state.values():
            self.terraform.cloud.pop(id_, None)
        self.terraform.state, self.terraform.deposed = {}, {}
        for commit, record in self.records.items():
            if record.begun:
                self.left[commit] = set()


TestApprovals = Approvals.TestCase
TestApprovals.settings = settings(max_examples=examples(400), stateful_step_count=14, deadline=None)


class Undisturbed(RuleBasedStateMachine):
    """Nobody changes anything by hand: what was reviewed is applied after every stop, without another question."""

    @initialize(before=configs, after=configs)
    def begin(self, before: dict[str, Attributes], after: dict[str, Attributes]) -> None:
        self.terraform, self.config = Terraform(), after
        list(self.terraform.apply(before, steps=END, how=WHOLE))
        changes = read(self.terraform.plan(after), salt="")
        self.record = Record(stack="s", commit="c", digest="d", terraform="1", changes=changes)

    @rule(steps=st.integers(0, 3), how=st.sampled_from((WHOLE, HALF)))
    def deploy(self, steps: int, how: str) -> None:
        now = read(self.terraform.plan(self.config), salt="")
        if now.empty:
            return
        assert not unreviewed(self.record, now, unfinished=self.record.begun)
        self.record = replace(self.record, begun=True)
        list(self.terraform.apply(self.config, steps=steps, how=how))


TestUndisturbed = Undisturbed.TestCase
TestUndisturbed.settings = settings(max_examples=examples(200), stateful_step_count=6, deadline=None)
