import pytest

from jobset_steps.report.text import clean, duration, moment, tail


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0, "0 s"),
        (-3, "0 s"),
        (0.4, "0.4 s"),
        (59.4, "59 s"),
        (59.6, "1 min"),
        (185, "3 min 5 s"),
        (3600, "1 h"),
        (7805, "2 h 10 min"),
        (86400 * 3 + 4 * 3600, "3 d 4 h"),
    ],
)
def test_durations_read_like_speech(seconds, said):
    assert duration(seconds) == said


def test_a_moment_is_in_utc():
    assert moment(0) == "1970-01-01 00:00:00 UTC"
    assert moment(None) == ""


@pytest.mark.parametrize(
    ("line", "seen"),
    [
        ("plain\tkept", "plain\tkept"),
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1b]0;title\x07text", "text"),
        ("10%\r50%\r100%", "100%"),
        ("ends\r\n", "ends"),
        ("a\x00b\x08c\x7fd\x9be", "abcde"),
        ("left\u202eright", "leftright"),
        ("half\udc80", "half"),
        ("naïve 日本 🙂", "naïve 日本 🙂"),
    ],
)
def test_a_line_is_what_a_person_would_have_seen(line, seen):
    assert clean(line) == seen


def test_the_tail_is_the_last_lines_without_empty_ones_at_the_end():
    assert tail(["a\nb", "c", "", "\x1b[0m"], limit=2) == ["b", "c"]
