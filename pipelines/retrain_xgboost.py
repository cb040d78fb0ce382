"""Retrains a classifier in a Kubeflow pipeline: prepare, train on one leader and three workers, branch on the verdict.

    python pipelines/retrain_xgboost.py              # one worker crashes once; the set restarts, resumes and finishes
    python pipelines/retrain_xgboost.py --fail       # training fails for good; the pipeline takes the other branch
    python pipelines/retrain_xgboost.py --compile retrain.yaml

The pipeline is the same in all three; without --compile it runs here, under kfp.local and on the local cluster.
"""

import argparse
import os
import sys
import time
from pathlib import Path

from kfp import compiler, dsl, local

from jobset_steps import Budgets, FailurePolicy, jobset_step, xgboost

HERE = Path(__file__).resolve().parent
IMAGE = "registry.example/retrain:1"  # on a cluster; on this machine commands run without images


@dsl.component(base_image=IMAGE, packages_to_install=[], install_kfp_package=False)
def prepare(train_set: dsl.Output[dsl.Dataset], test_set: dsl.Output[dsl.Dataset]) -> int:
    """Handwritten digits, which ship with scikit-learn; returns the number of rows to train on."""
    import numpy
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    features, labels = load_digits(return_X_y=True)
    split = train_test_split(features, labels, test_size=0.25, random_state=7, stratify=labels)
    for target, x, y in ((train_set, split[0], split[2]), (test_set, split[1], split[3])):
        with open(target.path, "wb") as file:
            numpy.savez(file, features=x, labels=y)
    return len(split[2])


@dsl.component(base_image=IMAGE, packages_to_install=[], install_kfp_package=False)
def evaluate(model: dsl.Input[dsl.Model], test_set: dsl.Input[dsl.Dataset]) -> float:
    """Accuracy on rows that training has not seen."""
    import numpy
    import xgboost

    with numpy.load(test_set.path) as data:
        features, labels = data["features"], data["labels"]
    with open(model.path, "rb") as file:
        booster = xgboost.Booster(model_file=bytearray(file.read()))
    return float((booster.predict(xgboost.DMatrix(features)).argmax(axis=1) == labels).mean())


@dsl.component(base_image=IMAGE, packages_to_install=[], install_kfp_package=False)
def promote(
    model: dsl.Input[dsl.Model], report: dsl.Input[dsl.HTML], accuracy: float, restarts: int, target: str
):
    """Put the model where it is served from."""
    import pathlib
    import shutil

    folder = pathlib.Path(target)
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(model.path, folder / "model.json")
    shutil.copy(report.path, folder / "report.html")
    (folder / "summary.txt").write_text(
        f"promoted a model with accuracy {accuracy:.3f}, after {restarts} restart(s)\n"
    )


@dsl.component(base_image=IMAGE, packages_to_install=[], install_kfp_package=False)
def report_failure(verdict: str, outcome: str, report: dsl.Input[dsl.HTML], target: str):
    """Tell people why there is no new model; the old one goes on serving."""
    import json
    import pathlib
    import shutil

    folder = pathlib.Path(target)
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(report.path, folder / "report.html")
    told = json.loads(outcome)
    cause = told["attempts"][-1]["cause"] or {}
    lines = [
        f"no new model: {verdict} ({told['reason']})",
        f"decided by rule {told['rule'] or 'none'}: {told['action']}",
        f"first failed pod: {cause.get('pod')}, exit code {cause.get('exit_code')}",
        *(f"  | {line}" for line in cause.get("log_tail", [])[-3:]),
    ]
    (folder / "summary.txt").write_text("\n".join(lines) + "\n")


@dsl.pipeline(name="retrain-xgboost")
def retrain(target: str, bad_data: bool = False, rounds: int = 20):
    data = prepare()
    spec = xgboost(
        "train",
        script=HERE / "retrain_xgboost_train.py",
        image=IMAGE,
        workers=3,
        args=[
            *("--data", data.outputs["train_set"]),
            *("--rounds", rounds),
            *("--bad-data", bad_data),
            *("--crash-rank", 2, "--crash-at-round", 6),
        ],
        checkpoints="pvc://retrain-checkpoints",
        failure_policy=FailurePolicy.resilient(max_restarts=2),
    )
    train = jobset_step(spec, on_failure="branch", budgets=Budgets(queue="12h", run="1h"))
    with dsl.If(train.outputs["verdict"] == "Succeeded"):
        accuracy = evaluate(model=train.outputs["model"], test_set=data.outputs["test_set"])
        promote(
            model=train.outputs["model"],
            report=train.outputs["report"],
            accuracy=accuracy.output,
            restarts=train.outputs["restarts"],
            target=target,
        )
    with dsl.Else():
        report_failure(
            verdict=train.outputs["verdict"],
            outcome=train.outputs["outcome"],
            report=train.outputs["report"],
            target=target,
        )


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--fail", action="store_true", help="let the training fail for good")
    parser.add_argument("--compile", metavar="FILE", help="compile to KFP's YAML instead of running")
    parser.add_argument("--out", type=Path, default=Path("out") / "retrain_xgboost", help="where results go")
    options = parser.parse_args()
    if options.compile:
        compiler.Compiler().compile(retrain, options.compile)
        return 0
    out = options.out.resolve() / time.strftime("%Y%m%d-%H%M%S")
    # The local cluster's logs, checkpoints and records; and tasks run with this interpreter, not the first in the PATH.
    os.environ["JOBSET_STEPS_HOME"] = str(out / "cluster")
    os.environ["PATH"] = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", "")))
    local.init(local.SubprocessRunner(use_venv=False), pipeline_root=str(out / "pipeline"))
    began = time.monotonic()
    retrain(target=str(out / "result"), bad_data=options.fail)
    print(f"\n{'=' * 80}\nThe pipeline took {time.monotonic() - began:.0f} s and ended:\n")
    print((out / "result" / "summary.txt").read_text())
    for path in (out / "result" / "model.json", out / "result" / "report.html", out / "cluster" / "jobsets"):
        if path.exists():
            print(f"  {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
