"""Services of systemd: systemd itself finds nothing wrong with them."""

import getpass
import shutil
import subprocess
from pathlib import Path

import pytest

from fedaccord.deployment.fence import nginx_words, superlink_words
from fedaccord.deployment.services import member_unit, server_units
from fedaccord.errors import InvalidInput
from tests.flower.deployment import BIN
from tests.flower.fence import NGINX, NO_NGINX


def units(directory: Path) -> dict[str, str]:
    user = getpass.getuser()
    command = ["fedaccord", "member", "start", str(directory)]
    return server_units(directory, BIN, user, superlink_words(8000), nginx_words(directory)) | {
        "fedaccord-member.service": member_unit(directory, BIN, user, command)
    }


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd here")
@pytest.mark.skipif(NGINX is None, reason=NO_NGINX)
@pytest.mark.parametrize("name", ["server", "St Mary, 100 %"])
def test_systemd_finds_nothing_wrong(name: str, tmp_path: Path) -> None:
    home = tmp_path / name
    home.mkdir()
    for file, text in units(home).items():
        (tmp_path / file).write_text(text)
        words = ["systemd-analyze", "verify", str(tmp_path / file)]
        done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
        assert (done.returncode, done.stderr) == (0, ""), text


def test_services_write_into_their_own_directory_only(tmp_path: Path) -> None:
    for text in units(tmp_path).values():
        assert "\nProtectSystem=strict\n" in text
        assert "\nNoNewPrivileges=yes\n" in text
        assert f'\nReadWritePaths="{tmp_path}"\n' in text
        assert "\nRestart=on-failure\n" in text
    superlink = units(tmp_path)["fedaccord-superlink.service"]
    assert "--host 127.0.0.1" in superlink
    assert "\nIPAddressDeny=any\nIPAddressAllow=localhost\n" in superlink


@pytest.mark.parametrize("name", ['a"b', "a$b", "a\nb"])
def test_what_systemd_would_misread_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="systemd cannot have"):
        units(tmp_path / name)
