"""Who a launcher is in a pod: its service account's files, and a token that is rotated on disk."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from jobset_steps.clusters.kubernetes import server
from jobset_steps.errors import BadInput

POD = {"KUBERNETES_SERVICE_HOST": "10.96.0.1", "KUBERNETES_SERVICE_PORT": "6443"}


@pytest.fixture
def account(tmp_path: Path) -> Path:
    for name, text in {"token": "first\n", "ca.crt": "authority", "namespace": "team\n"}.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def test_a_pod_talks_to_its_own_server_as_its_own_account(account: Path) -> None:
    found = server._of_pod(account, POD)
    assert found.host == "https://10.96.0.1:6443"
    assert found.credentials() == {"authorization": "Bearer first"}
    assert found.pool.connection_pool_kw["ca_certs"] == str(account / "ca.crt")
    # Whether a request took effect is for others to find out.
    assert found.pool.connection_pool_kw["retries"].total is False


def test_a_server_may_have_an_address_of_version_6(account: Path) -> None:
    assert server._of_pod(account, {"KUBERNETES_SERVICE_HOST": "fd00::1"}).host == "https://[fd00::1]:443"


def test_e3_a_rotated_token_is_read_within_a_minute_and_a_missing_one_does_no_harm(
    account: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1000.0]
    monkeypatch.setattr(server.time, "monotonic", lambda: now[0])
    found = server._of_pod(account, POD)
    (account / "token").write_text("second")
    assert found.credentials() == {"authorization": "Bearer first"}
    now[0] += 61
    assert found.credentials() == {"authorization": "Bearer second"}
    (account / "token").unlink()
    now[0] += 61
    assert found.credentials() == {"authorization": "Bearer second"}


@pytest.mark.parametrize("missing", ["token", "ca.crt"])
def test_an_account_without_its_files_is_bad_input(account: Path, missing: str) -> None:
    (account / missing).unlink()
    with pytest.raises(BadInput, match="service account"):
        server._of_pod(account, POD)


def test_a_launcher_in_a_pod_does_not_import_what_it_does_not_need() -> None:
    code = (
        "import sys, jobset_steps.launch.argo, jobset_steps.clusters.kubernetes;"
        "print({'kubernetes', 'hera', 'kfp', 'typer', 'rich'} & set(sys.modules))"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "set()"
