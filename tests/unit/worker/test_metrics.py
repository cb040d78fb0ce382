import json

import pytest

from jobset_steps.errors import BadInput
from jobset_steps.worker import report_metrics


class Scalar:
    """What a NumPy or tensor scalar looks like from outside."""

    def __init__(self, value):
        self.value = value

    def item(self):
        return self.value


@pytest.fixture
def log(tmp_path, monkeypatch):
    path = tmp_path / "termination-log"
    monkeypatch.setenv("JOBSET_STEPS_TERMINATION_LOG", str(path))
    monkeypatch.setenv("JOBSET_STEPS_RANK_OFFSET", "0")
    monkeypatch.setenv("JOBSET_STEPS_WORLD_SIZE", "2")
    return path


def test_the_leaders_metrics_are_in_the_termination_log(log):
    assert report_metrics({"auc": Scalar(0.75), "rounds": 40, "best": {"depth": 6}}) is True

    assert json.loads(log.read_text()) == {"metrics": {"auc": 0.75, "rounds": 40, "best": {"depth": 6}}}


def test_the_last_call_counts(log):
    report_metrics({"auc": 0.5, "a longer one": 1})
    report_metrics({"auc": 0.6})

    assert json.loads(log.read_text()) == {"metrics": {"auc": 0.6}}


def test_other_ranks_may_call_it_and_write_nothing(log, monkeypatch):
    monkeypatch.setenv("JOB_COMPLETION_INDEX", "1")

    assert report_metrics({"auc": 0.5}) is False
    assert not log.exists()


def test_the_limit_is_4096_bytes_and_the_largest_is_named(log):
    room = 4096 - len('{"metrics":{"small":1,"curve":""}}')

    report_metrics({"small": 1, "curve": "é" * (room // 2)})
    assert len(log.read_bytes()) in (4095, 4096)

    with pytest.raises(BadInput, match=r"at most 4096 bytes .*, 4098 given; the largest is 'curve'|4097"):
        report_metrics({"small": 1, "curve": "é" * (room // 2 + 1)})


@pytest.mark.parametrize("value", [float("nan"), float("inf"), object(), {1, 2}, Scalar(float("nan"))])
def test_what_is_no_figure_is_refused_by_name(log, value):
    with pytest.raises(BadInput, match=r"metrics\['loss'\]"):
        report_metrics({"auc": 1.0, "loss": value})

    assert not log.exists()


def test_a_log_that_cannot_be_written_is_named(log, monkeypatch, tmp_path):
    monkeypatch.setenv("JOBSET_STEPS_TERMINATION_LOG", str(tmp_path / "no" / "where"))

    with pytest.raises(BadInput, match=r"no/where.*JOBSET_STEPS_TERMINATION_LOG"):
        report_metrics({"auc": 1.0})
