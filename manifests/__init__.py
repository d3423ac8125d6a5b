"""Recipes: a folder for each, with manifests, parameters, program, Dockerfile and README; and how a run is rendered.

Imports environment/ and vocabulary/. The programs in the folders of the recipes are no modules of this package.
"""
