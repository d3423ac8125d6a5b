"""Prints the resources of the Ray cluster: its cores, its memory and its TPU chips."""

import ray

if __name__ == "__main__":
    ray.init(address="auto")
    print(ray.cluster_resources())
