import re
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest
from report_outcomes import ALL, FAILURE, FIFTY, HOSTILE, QUEUE_TIMEOUT, SUCCESS, T0

from jobset_steps.outcome import Attempt, Cause, Outcome, Restarts, Verdict
from jobset_steps.report import explain, html, lines, markdown

VOID = {"meta", "br", "hr", "img", "link", "input"}


class Page(HTMLParser):
    """What a browser makes of the page: elements, their attributes, and the text outside of style."""

    def __init__(self, source):
        super().__init__()
        self.open, self.tags, self.attributes, self.text = [], [], [], ""
        self.feed(source)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "style" not in self.open:
            self.text += data


@pytest.mark.parametrize("name", ALL)
def test_markdown_is_what_was_looked_at(name, golden):
    golden(f"report/{name}.md", markdown(ALL[name]))


@pytest.mark.parametrize("name", ALL)
def test_the_explanation_is_what_was_looked_at(name, golden):
    golden(f"report/{name}.explain.txt", explain(ALL[name]))


@pytest.mark.parametrize("name", ALL)
def test_the_lines_for_a_terminal_are_what_was_looked_at(name, golden):
    golden(f"report/{name}.lines.txt", "\n".join(lines(ALL[name])) + "\n")


@pytest.mark.parametrize("name", ALL)
def test_the_page_is_well_formed_and_loads_and_runs_nothing(name):
    source = html(ALL[name])
    page = Page(source)

    assert not {"script", "link", "img", "iframe", "object", "a", "form"} & set(page.tags)
    assert not [key for key, _ in page.attributes if key in ("src", "href") or key.startswith("on")]
    assert "url(" not in source
    assert "default-src 'none'" in source


def test_a_page_says_verdict_cause_rule_and_action():
    text = Page(html(FAILURE)).text

    for said in (
        "Failed",
        "FailJobSetFailurePolicyAction",
        "exit code 17",
        "fatalExitCode",
        "FailJobSet",
        "pool-a-2",
    ):
        assert said in text


def test_the_picture_has_a_bar_for_each_attempt_where_it_lay_in_time():
    picture = re.search(r'<svg class="strip".*?</svg>', html(SUCCESS), re.DOTALL)[0]
    root = ElementTree.fromstring(picture)
    bars = {rect.get("class"): rect for rect in root.iter("rect")}

    assert [rect.get("class") for rect in root.iter("rect")] == [
        "track",
        "queued",
        "starting",
        "counted",
        "free",
        "succeeded",
    ]
    assert float(bars["counted"].get("x").rstrip("%")) == pytest.approx(700 / 7902 * 100, abs=0.01)
    assert float(bars["counted"].get("width").rstrip("%")) == pytest.approx(1800 / 7902 * 100, abs=0.01)
    assert float(bars["queued"].get("width").rstrip("%")) == pytest.approx(620 / 7902 * 100, abs=0.01)


def test_the_picture_is_told_in_words_to_who_cannot_see_it():
    root = ElementTree.fromstring(re.search(r'<svg class="strip".*?</svg>', html(SUCCESS), re.DOTALL)[0])

    assert root.get("role") == "img"
    assert root.find("title").text == "3 attempts over 2 h 11 min"
    assert (
        "Attempt 0: failed, restart counted, train-1a2b3c4d-workers-0-2-x7k2p out of memory"
        in root.find("desc").text
    )


def test_fifty_attempts_are_all_there_and_neighbours_alike_are_folded():
    source = html(FIFTY)
    picture = re.search(r'<svg class="strip".*?</svg>', source, re.DOTALL)[0]

    assert len(re.findall(r'<rect class="(?:counted|free|missed guessed|failed)"', picture)) == 50
    assert all(f"Attempt {number}: " in source for number in range(50))
    assert "6 more that ended the same way (attempts 1 to 6)" in source
    assert len(lines(FIFTY)) < 30


def test_what_the_training_printed_is_only_text():
    source = html(FAILURE)

    assert "<script" not in source
    assert "&lt;/pre&gt;&lt;script&gt;alert(1)&lt;/script&gt;" in source
    assert "\x1b" not in source
    assert "\u202e" not in source
    assert "loading 100%" in source
    assert "loading  10%" not in source
    assert "main(<b>&amp;</b>)" in Page(source).text


def test_a_fence_in_a_log_does_not_end_the_fence_around_it():
    said = markdown(FAILURE)

    opened = said.index("````text")
    closed = said.index("\n````\n", opened)
    assert "</pre><script>" in said[opened:closed]


def test_markdown_outside_of_fences_holds_no_html():
    outside = re.sub(r"(`{3,})text.*?\1", "", markdown(FAILURE), flags=re.DOTALL)

    assert "&lt;see &amp; weep&gt;" in outside
    assert "<" not in outside


def failed_with(**cause):
    return Outcome(
        verdict=Verdict.FAILED,
        reason="FailedJobs",
        attempts=(Attempt(number=0, cause=Cause(replicated_job="node", index=1, **cause)),),
        exit_code=1,
    )


@pytest.mark.parametrize(
    ("cause", "said", "todo"),
    [
        ({"exit_code": 137, "oom": True}, "out of memory (exit code 137)", "memory limit"),
        ({"exit_code": 137}, "SIGKILL (killed from outside", "last log lines"),
        ({"exit_code": 139}, "SIGSEGV (it touched memory", "last log lines"),
        ({"exit_code": 143, "disrupted": True}, "it is not the training's fault", "steadier"),
        ({"exit_code": 143}, "SIGTERM (it was told to end)", "last log lines"),
        ({"exit_code": 127}, "the command is not in the image", "Check the command and the image"),
        ({"signal": 7}, "SIGBUS (memory that was not there, often a /dev/shm", "last log lines"),
        ({"exit_code": 1}, "an exception that nothing caught", "last log lines"),
        ({"exit_code": 200}, "exit code 200", "last log lines"),
        ({"reason": "DeadlineExceeded"}, "DeadlineExceeded", "last log lines"),
    ],
)
def test_an_exit_code_is_told_in_words_with_what_to_do(cause, said, todo):
    text = explain(failed_with(**cause))

    assert "node-0-1 failed first: " in text
    assert said in text
    assert todo in text.split("What to do:")[1]


def test_the_two_restart_counters_are_told_apart():
    assert "1 of at most 3, and 1 free" in explain(SUCCESS)
    assert "no failure policy" in explain(failed_with(exit_code=1))


def test_used_up_restarts_are_named_as_what_decided():
    said = explain(FIFTY)

    assert "RestartJobSet, but all 44 counted restarts were used" in said
    assert "49 failed, in 2 different ways; 1 passed while no launcher lived to see it" in said


@pytest.mark.parametrize("verdict", Verdict)
def test_every_verdict_has_words_and_a_way_out(verdict):
    outcome = Outcome(verdict=verdict, restarts=Restarts(maximum=0))
    said = explain(outcome)

    assert said.startswith(f"Verdict:       {verdict.value}. ")
    assert ("What to do:" in said) == (verdict is not Verdict.SUCCEEDED)
    assert Page(html(outcome)).text
    assert markdown(outcome)
    assert lines(outcome)


def test_a_retry_is_said_to_be_worth_it_only_where_it_is():
    lost = FAILURE.model_copy(update={"retryable": True, "exit_code": 75})

    assert "Worth a retry: Yes" in explain(lost)
    assert "Worth a retry: Not as it is" in explain(FAILURE)
    assert "adopts" in explain(Outcome(verdict=Verdict.UNKNOWN, reason="LauncherEvicted", exit_code=76))


def test_b8_a_jobset_left_behind_is_named_by_every_report():
    leaked = QUEUE_TIMEOUT.model_copy(update={"leaked": "ml/train-5e6f7a8b"})

    for text in (explain(leaked), "\n".join(lines(leaked)), markdown(leaked), html(leaked)):
        assert "Delete the JobSet ml/train-5e6f7a8b by hand" in text


def test_c7_the_cause_of_each_attempt_outlives_its_pods():
    outcome = SUCCESS.model_copy(
        update={
            "attempts": (
                Attempt(
                    number=0,
                    started_at=T0,
                    ended_at=T0 + 60,
                    cause=Cause(replicated_job="workers", index=3, exit_code=17, log_tail=("bad shard 3",)),
                    action="RestartJobSet",
                    counted=True,
                ),
                Attempt(number=1, started_at=T0 + 61, ended_at=T0 + 120),
            )
        }
    )

    assert "workers-0-3 exit code 17 -> RestartJobSet" in "\n".join(lines(outcome))
    assert "bad shard 3" in html(outcome)


def test_an_outcome_without_times_has_no_picture_but_all_the_words():
    outcome = failed_with(exit_code=1, log_tail=HOSTILE)

    assert "<svg" not in html(outcome)
    assert "exit code 1" in html(outcome)
    assert "| 0 | failed and ended the training |" in markdown(outcome)
