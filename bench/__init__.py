"""How fast synthesis and a rehearsal are, measured here and now: `make bench`. Imports nothing of ours."""
