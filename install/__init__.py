"""Installs everything the project needs into `.venv`. Standard library only: it runs before anything is installed."""
