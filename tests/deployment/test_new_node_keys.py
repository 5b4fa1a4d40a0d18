"""A member with new keys, on a real SuperLink: its new node takes part, and the old one is out."""

import shutil
from pathlib import Path

import pytest

from fedaccord.deployment.admission import admit
from fedaccord.deployment.app_directory import INVITATION, TO_SIGN, write_app
from fedaccord.deployment.invitation import load_invitation
from fedaccord.deployment.member_directory import CARD, SIGNATURE, sign_member, write_member
from fedaccord.deployment.processes import Processes
from fedaccord.deployment.rehearsal import prepare_rehearsal, start_nodes, start_server
from fedaccord.deployment.server import nodes_of, register_members, reload_proxy
from fedaccord.flower.client_file import load_client_file
from fedaccord.flower.running import run_slots_and_watch
from fedaccord.ledger.lines import load_entries
from tests.flower.consortia import terms_of

NAMES = ("a", "b", "c")


@pytest.mark.slow
def test_the_node_of_a_member_with_new_keys_takes_part(tmp_path: Path) -> None:
    write_app(tmp_path / "app", terms_of(NAMES))
    rehearsal = prepare_rehearsal(tmp_path / "app", tmp_path / "place", lambda _: None)
    server, member = rehearsal.server, rehearsal.members["b"]
    with (
        Processes(tmp_path / "logs") as processes,
        Processes(tmp_path / "logs") as nodes,
    ):
        start_server(rehearsal, processes, lambda _: None)
        before = {node.name: node for node in nodes_of(server)}
        assert register_members(server) == []
        old = tmp_path / "old"
        shutil.move(member, old)
        private = load_client_file(old / "client.toml").private
        write_member(member, load_invitation(server / INVITATION), private)
        shutil.copytree(old / "data", member / "data", dirs_exist_ok=True)
        admit(server, [member / CARD], replaces=True)
        for one in rehearsal.members.values():
            sign_member(one, load_invitation(server / TO_SIGN))
        admit(server, [one / SIGNATURE for one in rehearsal.members.values()])
        reload_proxy(server)  # the proxy has to know its certificate, too
        assert register_members(server) == ["b"]
        after = {node.name: node for node in nodes_of(server)}
        assert len(nodes_of(server)) == len(NAMES)
        assert [name for name in NAMES if before[name] != after[name]] == ["b"]
        assert before["b"].public != after["b"].public
        assert register_members(server) == []
        start_nodes(rehearsal, nodes, lambda _: None)
        assert run_slots_and_watch(server, 1)
    verdicts = {
        entry.client: entry.body["verdict"]
        for entry in load_entries(str(rehearsal.ledger))
        if entry.kind == "verdict"
    }
    assert verdicts == dict.fromkeys(NAMES, "kept")
