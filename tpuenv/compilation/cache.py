"""Answers of the compiler on disk, so that no question is compiled twice."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tpuenv.compilation.answers import Answer, NotAnAnswer, answer_from
from tpuenv.compilation.question import Question
from vocabulary.text_file import replace_text


@dataclass(frozen=True)
class Cache:
    """A file for each question, named by its digest."""

    folder: Path

    def read(self, question: Question) -> Answer | None:
        """The answer, or None: it was not kept, or the file is damaged."""
        try:
            entry = json.loads(self._file(question).read_text(encoding="utf-8"))
            return answer_from(entry["answer"]) if entry["question"] == _as_json(question) else None
        except (OSError, ValueError, KeyError, TypeError, RecursionError, NotAnAnswer):
            return None

    def write(self, question: Question, answer: dict[str, Any]) -> None:
        """Keeps the answer, as the program printed it, whole or not at all; a disk that is full or read-only is no
        error.
        """
        file = self._file(question)
        with suppress(OSError):
            self.folder.mkdir(parents=True, exist_ok=True)
            replace_text(file, json.dumps({"question": _as_json(question), "answer": answer}))

    def _file(self, question: Question) -> Path:
        return self.folder / f"{question.digest}.json"


def _as_json(question: Question) -> Any:
    return json.loads(json.dumps(asdict(question)))
