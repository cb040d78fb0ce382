"""The structure of a pod template as the API server has it: pod.json, which tools/generate_pod_schema writes."""
