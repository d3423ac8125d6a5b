"""All that exists in a fake cloud, copied to a file and put back: what several tests begin with is created once."""

from __future__ import annotations

from pathlib import Path

from rehearsal.cloud import Cloud

_TABLES = ("objects", "counters", "blobs")


def save(cloud: Cloud, path: Path) -> Path:
    """Copies the cloud to a new file, and returns its path."""
    cloud._connection.execute("VACUUM INTO ?", (str(path),))
    return path


def restore(cloud: Cloud, path: Path) -> None:
    """Replaces all that exists by what was saved."""
    cloud._connection.execute("ATTACH DATABASE ? AS kept", (str(path),))
    with cloud.transaction():
        for table in _TABLES:
            cloud._connection.execute(f"DELETE FROM main.{table}")
            cloud._connection.execute(f"INSERT INTO main.{table} SELECT * FROM kept.{table} ORDER BY rowid")
    cloud._connection.execute("DETACH DATABASE kept")
