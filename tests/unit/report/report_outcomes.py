"""Outcomes to draw: the ends that people meet, with hostile text where text comes from outside."""

from jobset_steps.outcome import Attempt, Cause, Outcome, Restarts, SecondsSpent, Verdict

T0 = 1_787_000_000.0

SUCCESS = Outcome(
    verdict=Verdict.SUCCEEDED,
    reason="AllJobsCompleted",
    message="jobset completed successfully",
    restarts=Restarts(total=2, counted=1, maximum=3),
    attempts=(
        Attempt(
            number=0,
            started_at=T0 + 700,
            ended_at=T0 + 2500,
            cause=Cause(
                job="train-1a2b3c4d-workers-0",
                replicated_job="workers",
                index=2,
                pod="train-1a2b3c4d-workers-0-2-x7k2p",
                node="gpu-7",
                container="trainer",
                exit_code=137,
                signal=9,
                reason="OOMKilled",
                oom=True,
                log_tail=("round 40", "round 41"),
                at=T0 + 2499,
            ),
            action="RestartJobSet",
            counted=True,
        ),
        Attempt(
            number=1,
            started_at=T0 + 2560,
            ended_at=T0 + 3900,
            cause=Cause(
                job="train-1a2b3c4d-workers-0",
                replicated_job="workers",
                index=0,
                pod="train-1a2b3c4d-workers-0-0-mm4xq",
                node="spot-3",
                container="trainer",
                exit_code=143,
                reason="Evicted",
                message="The node was low on resource: memory",
                disrupted=True,
                log_tail=("resumed from round 40", "round 77"),
            ),
            rule="disruption",
            action="RestartJobSetAndIgnoreMaxRestarts",
        ),
        Attempt(number=2, started_at=T0 + 4000, ended_at=T0 + 7900),
    ),
    seconds=SecondsSpent(queued=620, starting=240, running=7040),
    metrics={"auc": 0.9312, "rounds": 200, "best": {"depth": 6}},
    run="nightly-2026-08-18",
    step="train",
    namespace="ml",
    jobset="train-1a2b3c4d",
    uid="5f0c",
    started_at=T0,
    finished_at=T0 + 7902,
    exit_code=0,
)

HOSTILE = (
    "\x1b[31mTraceback (most recent call last):\x1b[0m",
    '  File "/app/train.py", line 41, in <module>',
    "    main(<b>&amp;</b>)",
    "\x1b]0;owned\x07loading  10%\rloading 100%",
    "```",
    "</pre><script>alert(1)</script>",
    "ValueError: labels must be \u202e0 or 1\x00, got 'yes' | 'no'",
)


def _bad_labels(number, at, **more):
    return Attempt(
        number=number,
        started_at=at,
        ended_at=at + 95,
        cause=Cause(
            job="finetune-99aa88bb-node-0",
            replicated_job="node",
            index=1,
            pod="finetune-99aa88bb-node-0-1-q2w3e",
            node="pool-a-2",
            container="trainer",
            exit_code=17,
            reason="Error",
            log_tail=HOSTILE,
        ),
        **more,
    )


FAILURE = Outcome(
    verdict=Verdict.FAILED,
    reason="FailJobSetFailurePolicyAction",
    message="applying FailJobSet failure policy action (first failed job: finetune-99aa88bb-node-0) <see & weep>",
    rule="fatalExitCode",
    action="FailJobSet",
    first_failed_job="finetune-99aa88bb-node-0",
    restarts=Restarts(total=0, counted=0, maximum=3),
    attempts=(_bad_labels(0, T0 + 30, rule="fatalExitCode", action="FailJobSet"),),
    seconds=SecondsSpent(queued=4, starting=26, running=95),
    run="wf-8xk2",
    step="finetune",
    namespace="ml",
    jobset="finetune-99aa88bb",
    started_at=T0,
    finished_at=T0 + 126,
    exit_code=1,
)

QUEUE_TIMEOUT = Outcome(
    verdict=Verdict.QUEUE_TIMEOUT,
    reason="QueueTimeout",
    message="not admitted within 12 h: couldn't assign flavors to pod set workers: insufficient quota for nvidia.com/gpu "
    "in flavor a100, request > maximum capacity (16 > 8)",
    restarts=Restarts(maximum=3),
    seconds=SecondsSpent(queued=43200),
    run="nightly-2026-08-19",
    step="train",
    namespace="ml",
    jobset="train-5e6f7a8b",
    started_at=T0,
    finished_at=T0 + 43204,
    exit_code=124,
)


def _many():
    attempts = []
    at = T0 + 120
    for number in range(50):
        lasts = 240 + 37 * (number * number % 11)
        if number == 22:
            attempts.append(Attempt(number=number, missed=True, action="RestartJobSet", counted=True))
        elif number % 10 == 7:
            attempts.append(
                Attempt(
                    number=number,
                    started_at=at,
                    ended_at=at + lasts,
                    cause=Cause(
                        replicated_job="workers",
                        job="pretrain-77aa66bb-workers-0",
                        index=number % 8,
                        pod=f"pretrain-77aa66bb-workers-0-{number % 8}-abcde",
                        node=f"spot-{number}",
                        exit_code=143,
                        reason="Preempted",
                        disrupted=True,
                    ),
                    rule="disruption",
                    action="RestartJobSetAndIgnoreMaxRestarts",
                )
            )
        else:
            attempts.append(
                Attempt(
                    number=number,
                    started_at=at,
                    ended_at=at + lasts,
                    cause=Cause(
                        replicated_job="workers",
                        job="pretrain-77aa66bb-workers-0",
                        index=3,
                        pod=f"pretrain-77aa66bb-workers-0-3-k{number:04d}",
                        node="gpu-3",
                        exit_code=139,
                        reason="Error",
                        log_tail=(
                            f"step {number * 100}",
                            "NCCL WARN Cuda failure 'an illegal memory access'",
                        ),
                    ),
                    action="RestartJobSet",
                    counted=number < 49,
                )
            )
        at += lasts + 20
    return tuple(attempts), at


_ATTEMPTS, _END = _many()
FIFTY = Outcome(
    verdict=Verdict.FAILED,
    reason="ReachedMaxRestarts",
    message="jobset failed due to reaching max number of restarts (first failed job: pretrain-77aa66bb-workers-0)",
    action="RestartJobSet",
    first_failed_job="pretrain-77aa66bb-workers-0",
    restarts=Restarts(total=49, counted=44, maximum=44),
    attempts=_ATTEMPTS,
    seconds=SecondsSpent(queued=60, starting=1040, running=_END - T0 - 1100),
    run="pretrain-7",
    step="pretrain",
    namespace="research",
    jobset="pretrain-77aa66bb",
    started_at=T0,
    finished_at=_END,
    exit_code=1,
)

ALL = {"success": SUCCESS, "failure": FAILURE, "queue-timeout": QUEUE_TIMEOUT, "fifty-attempts": FIFTY}
