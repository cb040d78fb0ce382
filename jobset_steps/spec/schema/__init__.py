"""The structure of a pod template as the API server has it: pod.json, and what writes it."""
