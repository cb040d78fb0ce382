"""A throw-away one-node Kubernetes on this machine: real API server, kubelet, JobSet, Argo and Kueue, built from Go modules.

`python -m tests.cluster.harness up` starts it and prints its KUBECONFIG, `down` ends it. Nothing comes from an image registry.
"""
