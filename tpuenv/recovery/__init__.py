"""What `tpuenv recover` and a failed command do about locks, states, and objects that no state has."""
