"""The `tpuenv` command.

From the top: commands (a file a subcommand), deployments, recovery, rehearsals, status, preflight, verification,
review (plans), jobs, cost, state (the bucket), kubernetes (a client), compilation, google and terraform (what is
outside), and terminal. Besides: main, which knows the subcommands, failure, and tool_versions. tests/test_layout.py
holds the order.

Imports environment/, admission/, manifests/ and rehearsal/. Nothing imports it. Every package may import environment/,
vocabulary/, failure and terminal; what else, its docstring says.
"""
