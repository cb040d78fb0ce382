"""A throw-away one-node Kubernetes on this machine: real API server, kubelet, JobSet, Argo and Kueue.

All is built from Go modules and nothing comes from an image registry. `python -m tests.cluster.harness up` starts it and prints
its KUBECONFIG, `down` ends it.
"""
