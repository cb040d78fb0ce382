"""What the controllers of JobSet 0.11.1 and of Kubernetes 1.34 would do: pure functions of plain data.

`failure_policy`, `success_policy` and `startup` each hold one part of the JobSet controller, `jobset` puts them in its
order; `job` is the Job controller beneath. Nothing here knows a clock, a cluster or a pod that runs.
"""
