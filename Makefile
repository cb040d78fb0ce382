VENV := .venv
