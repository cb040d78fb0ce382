"""The process that is parent of everything a local cluster runs, and that outlives it just long enough to end it all.

It is started as a script of its own, imports the standard library only, and obeys lines of JSON on a socket: start,
terminate and kill containers; it answers what became of them. It decides nothing about pods, restarts or time.

    local cluster --socket-- guardian --fork-- keeper (one a container) --fork, exec-- main process -- whatever it starts

Guardian and keepers are child subreapers, so a descendant that makes a new session, forks twice or daemonises is still
found below its keeper. A keeper ends when it has no child left, hence no descendant, which is exact where a list of
process groups or environment marks is not. Who dies takes everything below along: the guardian hears of the cluster's
death by end of file and by a pidfd, a keeper of the guardian's by PR_SET_PDEATHSIG, and what a killed keeper leaves
behind falls to the guardian.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import json
import os
import select
import signal
import sys
import time
from typing import Any, NoReturn

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36

_KILL_ALL = signal.SIGUSR1
"""What tells a keeper to end its whole tree: sent by the guardian, or by the kernel when the guardian died."""

_KEEPER_SIGNALS = (signal.SIGCHLD, signal.SIGTERM, _KILL_ALL, signal.SIGALRM)
_DEFAULTED = (*_KEEPER_SIGNALS, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE, signal.SIGXFSZ)

_SWEEP = 0.02
"""Seconds between two passes over descendants that were killed and are not gone yet."""

_PATIENCE = 10.0
"""Seconds that the keepers have to end their trees before the guardian ends the keepers."""

_LINUX = sys.platform.startswith("linux")
_libc = ctypes.CDLL(None, use_errno=True) if _LINUX else None


def _prctl(option: int, value: int) -> None:
    if _libc is not None and _libc.prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), f"prctl({option}, {value})")


def children(pid: int) -> list[int]:
    """Live and unreaped children of a process, of all its threads."""
    if not _HAS_CHILDREN_FILE:
        return [child for child, parent in _parents() if parent == pid]
    found: list[int] = []
    with contextlib.suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            # A thread that ended meanwhile has given its children to another one, which the next pass sees.
            with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{thread}/children", "rb") as file:
                found += map(int, file.read().split())
    return found


def _parents() -> list[tuple[int, int]]:
    """(pid, parent's pid) of every process, for systems whose /proc does not list children, or that have none."""
    with os.popen("ps -A -o pid= -o ppid=") as out:
        return [(int(pid), int(parent)) for pid, parent in map(str.split, out)]


_HAS_CHILDREN_FILE = os.path.exists(f"/proc/{os.getpid()}/task/{os.getpid()}/children")


def kill_tree(root: int, *, spare_root: bool) -> None:
    """SIGKILL to all descendants found now. Who forks while this looks is found by the next pass."""
    found, look = [], [root]
    while look:
        pid = look.pop()
        if pid != root or not spare_root:
            found.append(pid)
        look += children(pid)
    for pid in found:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)


def _main_process(order: dict[str, Any], keeper: int, failure: int) -> NoReturn:
    """In the child that becomes the container's main process."""
    using = "the kernel"
    try:
        _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != keeper:
            os._exit(137)
        os.setsid()
        for number in _DEFAULTED:
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        using = order["log"]
        log = os.open(using, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(log, 1)
        os.dup2(log, 2)
        using = order["cwd"]
        os.chdir(using)
        using = order["argv"][0]
        os.execvpe(order["argv"][0], order["argv"], order["env"])
    except BaseException as error:
        what = f"{using}: {error.strerror}" if isinstance(error, OSError) else repr(error)
        os.write(failure, what[:1000].encode(errors="replace"))
    finally:
        os._exit(128)


def _keep(order: dict[str, Any], report: int, guardian: int) -> NoReturn:
    """In the child that keeps one container: start it, wait, leave nothing of it, report, exit."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    _prctl(_PR_SET_PDEATHSIG, _KILL_ALL)
    if os.getppid() != guardian:
        os._exit(0)

    def tell(**fact: Any) -> None:
        # Shorter than PIPE_BUF, so that the lines of many keepers never mix.
        with contextlib.suppress(OSError):
            os.write(report, json.dumps({"id": order["id"], "at": time.monotonic(), **fact}).encode() + b"\n")

    me = os.getpid()
    failed_read, failed_write = os.pipe()
    try:
        main = os.fork()
    except OSError as error:
        tell(event="exited", code=128, signal=None, error=f"cannot start a process: {error.strerror}")
        os._exit(0)
    if main == 0:
        _main_process(order, me, failed_write)
    os.close(failed_write)
    # End of file means that exec closed it.
    failure = os.read(failed_read, 1000).decode(errors="replace")
    os.close(failed_read)
    if not failure:
        tell(event="started", pid=main)

    status: int | None = None
    ended_at = 0.0
    killing = False
    while True:
        try:
            while (reaped := os.waitpid(-1, os.WNOHANG))[0]:
                if reaped[0] == main:
                    # As in a container, whose processes all end with its first one.
                    status, ended_at, killing = reaped[1], time.monotonic(), True
        except ChildProcessError:
            break
        if killing:
            kill_tree(me, spare_root=True)
        got = _next_signal(_SWEEP if killing else None)
        if got == _KILL_ALL or os.getppid() != guardian:
            killing = True
        elif got == signal.SIGTERM and status is None:
            os.kill(main, signal.SIGTERM)
    code = os.waitstatus_to_exitcode(status) if status is not None else -9
    by_signal = -code if code < 0 else None
    tell(event="exited", at=ended_at, code=128 - code if code < 0 else code, signal=by_signal, error=failure)
    os._exit(0)


def _next_signal(timeout: float | None) -> int | None:
    if _LINUX:
        got = (
            signal.sigwaitinfo(_KEEPER_SIGNALS)
            if timeout is None
            else signal.sigtimedwait(_KEEPER_SIGNALS, timeout)
        )
        return None if got is None else got.si_signo
    # No PR_SET_PDEATHSIG and no wait with a limit: an alarm makes the keeper look for its parent now and then.
    signal.setitimer(signal.ITIMER_REAL, 0.5 if timeout is None else timeout)
    return signal.sigwait(_KEEPER_SIGNALS)


class Guardian:
    """The loop between the socket and the keepers."""

    def __init__(self, control: int, parent: int) -> None:
        self._control = control
        self._keepers: dict[str, int] = {}
        self._ids: dict[int, str] = {}
        self._in = b""
        self._reports = b""
        self._out = b""
        self._ending_since: float | None = None
        self._strays = False
        self._told_to_end = False
        self._report_read, self._report_write = os.pipe()
        self._wake_read, self._wake_write = os.pipe()
        for fd in (control, self._report_read, self._wake_read, self._wake_write):
            os.set_blocking(fd, False)
        self._poll = select.poll()
        for fd in (self._report_read, self._wake_read):
            self._poll.register(fd, select.POLLIN)
        self._poll.register(control, select.POLLIN)
        signal.set_wakeup_fd(self._wake_write, warn_on_full_buffer=False)
        for number in (signal.SIGCHLD, signal.SIGTERM):
            signal.signal(number, self._on_signal)
        for number in (signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        self._parent = self._watch(parent)

    def _on_signal(self, number: int, _frame: object) -> None:
        # Only noted here: a handler runs between any two steps of the loop.
        self._told_to_end = self._told_to_end or number == signal.SIGTERM

    def _watch(self, parent: int) -> int | None:
        # A fork of the parent that lives on keeps the socket open; the pidfd tells of the death all the same.
        pidfd: int | None = None
        with contextlib.suppress(OSError, AttributeError):
            pidfd = os.pidfd_open(parent)
            self._poll.register(pidfd, select.POLLIN)
        self._told_to_end = os.getppid() != parent
        return pidfd

    def run(self) -> None:
        """Until the parent is gone and nothing is left that was started here."""
        while True:
            if self._told_to_end:
                self._end()
            none_left = self._reap()
            if self._ending_since is not None:
                if none_left:
                    return
                waited = time.monotonic() - self._ending_since
                if waited > 2 * _PATIENCE:
                    return
                if waited > _PATIENCE:
                    for pid in self._ids:
                        os.kill(pid, signal.SIGKILL)
                    self._strays = True
            if self._strays:
                self._kill_strays()
            busy = self._strays or self._ending_since is not None
            for fd, _ in self._poll.poll(_SWEEP * 1000 if busy else None):
                self._serve(fd)

    def _serve(self, fd: int) -> None:
        if fd == self._control:
            self._obey()
            self._flush()
        elif fd == self._report_read:
            self._hear()
        elif fd == self._wake_read:
            with contextlib.suppress(BlockingIOError):
                os.read(fd, 4096)
        elif fd == self._parent:
            self._end()

    def _obey(self) -> None:
        try:
            while data := os.read(self._control, 1 << 20):
                self._in += data
            self._end()
        except BlockingIOError:
            pass
        except OSError:
            self._end()
        *lines, self._in = self._in.split(b"\n")
        for line in lines:
            order = json.loads(line)
            if order["do"] == "start":
                self._start(order)
            elif (pid := self._keepers.get(order["id"])) is not None:
                os.kill(pid, signal.SIGTERM if order["do"] == "terminate" else _KILL_ALL)

    def _start(self, order: dict[str, Any]) -> None:
        if self._ending_since is not None:
            return
        # Blocked over the fork: the keeper waits for them instead, and none is lost before it does.
        signal.pthread_sigmask(signal.SIG_BLOCK, _KEEPER_SIGNALS)
        me = os.getpid()
        try:
            pid = os.fork()
        except OSError as error:
            self._tell({"event": "exited", "id": order["id"], "at": time.monotonic(), "code": 128, "signal": None,
                        "error": f"cannot start a process: {error.strerror}"})  # fmt: skip
            return
        finally:
            if os.getpid() == me:
                signal.pthread_sigmask(signal.SIG_UNBLOCK, _KEEPER_SIGNALS)
        if pid == 0:
            signal.set_wakeup_fd(-1)
            for fd in (self._control, self._report_read, self._wake_read, self._wake_write, self._parent):
                if fd is not None:
                    os.close(fd)
            try:
                _keep(order, self._report_write, me)
            finally:
                os._exit(70)
        self._keepers[order["id"]] = pid
        self._ids[pid] = order["id"]

    def _hear(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while data := os.read(self._report_read, 1 << 16):
                self._reports += data
        *lines, self._reports = self._reports.split(b"\n")
        for line in lines:
            fact = json.loads(line)
            if fact["event"] == "exited":
                self._keepers.pop(fact["id"], None)
            self._tell(fact)

    def _reap(self) -> bool:
        """Collect who ended. True if there is no child at all, hence no descendant."""
        try:
            while (reaped := os.waitpid(-1, os.WNOHANG))[0]:
                container = self._ids.pop(reaped[0], None)
                if container is None:
                    continue
                self._hear()
                if self._keepers.pop(container, None) is not None:
                    self._strays = True
                    self._tell({"event": "exited", "id": container, "at": time.monotonic(), "code": 137, "signal": 9,
                                "error": "the process that kept this container was killed"})  # fmt: skip
        except ChildProcessError:
            self._strays = False
            return True
        return False

    def _kill_strays(self) -> None:
        """What a killed keeper left behind: every child of ours that is no keeper, with all below it."""
        strays = [pid for pid in children(os.getpid()) if pid not in self._ids]
        for pid in strays:
            kill_tree(pid, spare_root=False)
        self._strays = bool(strays)

    def _end(self) -> None:
        if self._ending_since is None:
            self._ending_since = time.monotonic()
            for pid in self._ids:
                os.kill(pid, _KILL_ALL)
            self._strays = True
            for fd in (self._control, self._parent):
                if fd is not None:
                    with contextlib.suppress(KeyError):
                        self._poll.unregister(fd)

    def _tell(self, fact: dict[str, Any]) -> None:
        self._out += json.dumps(fact).encode() + b"\n"
        self._flush()

    def _flush(self) -> None:
        if self._ending_since is not None:
            return
        try:
            while self._out:
                self._out = self._out[os.write(self._control, self._out) :]
        except BlockingIOError:
            pass
        except OSError:
            self._end()
            return
        self._poll.modify(self._control, select.POLLIN | (select.POLLOUT if self._out else 0))


def main() -> None:
    """`guardian.py <control socket's descriptor> <pid of the cluster's process>`."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    guardian = Guardian(int(sys.argv[1]), int(sys.argv[2]))
    # Keepers are forks of this process: what the collector does not touch stays shared with them.
    gc.collect()
    gc.freeze()
    guardian.run()


if __name__ == "__main__":
    main()
