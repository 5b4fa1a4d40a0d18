"""From a consortium, in which all is known, to a Flower app: terms for all, private files for each.

The app is a directory. Nothing in the terms is secret; what only one client may know is in a file
of its own, which is not part of the app.
"""

import json
import re
import shlex
import shutil
import tempfile
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from importlib import resources
from pathlib import Path
from string import Template
from typing import Any

import numpy as np

from fedaccord.checks import normalised
from fedaccord.data.dataset import Dataset
from fedaccord.data.own import check_names
from fedaccord.data.partition import RandomPartition
from fedaccord.errors import FedaccordError, InvalidInput
from fedaccord.game.consortium import Consortium
from fedaccord.game.law import Law
from fedaccord.protocol.keys import Keys
from fedaccord.protocol.law import law_in_terms
from fedaccord.protocol.private import Private
from fedaccord.protocol.terms import FOR_EVER, Terms
from fedaccord.signing.keys import new_key, write_key

Slips = Mapping[str, Mapping[int, int]]
"""What some clients contribute in some slots instead of what they are asked for."""


def shared_terms(consortium: Consortium, rounds: int | None = None) -> dict[str, Any]:
    """The part of the terms that comes from the consortium, perhaps for other rounds than its own.

    The law is among them if it is not the paper's.
    """
    rounds = rounds or consortium.rounds
    law = shared_law(consortium, rounds)
    terms = {
        "name": consortium.name,
        "clients": list(consortium.names),
        "rounds": rounds,
        "discount_factor": _usual_discount_factor(consortium),
        "server_fee": consortium.server_fee,
    }
    return terms if law.kind == "paper" else terms | {"law": law_in_terms(law)}


def shared_law(consortium: Consortium, rounds: int) -> Law:
    """The law that everyone in the consortium knows and calculates with.

    The paper's holds for any rounds, every other law only for those that it was made for.
    """
    if not consortium.equal_quality:
        raise InvalidInput(
            "on Flower every sample counts as one: leave the quality of the clients' samples out",
            field="quality",
        )
    law, made_for = consortium.law, consortium.rounds
    if law.kind == "personal" or law.is_personal:
        raise InvalidInput(
            "on Flower all clients have one law: a client's own law would be private, and the "
            "server could not compute its offer",
            field="law",
        )
    if law.kind == "paper":
        if law.floor != Law.paper(made_for).floor:
            wrong = f"the paper's law of this consortium is not the one for its {made_for} rounds"
            raise InvalidInput(wrong, field="law")
        return Law.paper(rounds)
    if rounds != made_for:
        raise InvalidInput(
            f"the law of this consortium is for {made_for} rounds in a slot, not for {rounds}",
            field="rounds",
        )
    return replace(law, evidence=None)


def _usual_discount_factor(consortium: Consortium) -> float:
    """The most frequent discount factor: clients that have another one report it."""
    return float(Counter(consortium.discount_factor.tolist()).most_common(1)[0][0])


def privates_of(consortium: Consortium, slips: Slips | None = None) -> list[Private]:
    """What each client of a consortium knows about itself."""
    usual = _usual_discount_factor(consortium)
    broken = [client.name for client in consortium if client.samples != int(client.samples)]
    if broken:
        raise InvalidInput(f"{broken[0]}: samples must be a whole number")
    for name in slips or {}:
        consortium.index(name)
    planned = {normalised(name): amounts for name, amounts in (slips or {}).items()}
    return [
        Private(
            name=client.name,
            valuation=client.valuation,
            cost_per_sample=client.cost_per_sample,
            samples=int(client.samples),
            discount_factor=float(client.discount_factor or 0.0),
            communication_cost=client.communication_cost,
            tells_discount_factor=client.discount_factor != usual,
            slips=dict(planned.get(client.name, {})),
        )
        for client in consortium
    ]


def write_app(
    directory: Path, terms: Terms, privates: list[Private], dataset: Dataset | None = None
) -> Terms:
    """Write the directory, whole or not at all; the terms in it have everybody's public key.

    With a dataset, each client gets as many of its examples as it has samples, for a rehearsal.
    """
    _check_free(directory)
    check_names(terms.clients)
    folders = folder_names(terms.clients)
    server, keys = new_key(), {name: new_key() for name in terms.clients}
    public = Keys(server=server.public, clients={name: key.public for name, key in keys.items()})
    terms = terms.model_copy(update={"keys": public})
    try:
        parent = directory.resolve().parent
        parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".", dir=parent) as folder:
            made = Path(folder) / "app"
            _write_shared(made, terms, folders, directory)
            (made / "keys").mkdir(mode=0o700)
            write_key(made / "keys" / "signing.key", server)
            for private in privates:
                folder_of = made / "clients" / folders[private.name]
                _write_client(folder_of, private, terms)
                write_key(folder_of / "signing.key", keys[private.name])
            if dataset is not None:
                _write_data(made / "clients", folders, privates, dataset)
            _put(made, directory)
    except OSError as error:
        raise FedaccordError(f"{directory}: cannot be written: {error.strerror or error}") from None
    return terms


def _check_free(directory: Path) -> None:
    """Refuse a path that is taken, or where nothing can be written."""
    try:
        directory.stat()
    except FileNotFoundError:
        return
    except OSError as error:  # a name that is too long, or a link to itself
        raise FedaccordError(f"{directory}: cannot be written: {error.strerror}") from None
    if not directory.is_dir() or any(directory.iterdir()):
        raise FedaccordError(f"{directory}: exists already, and is not empty")


def _put(made: Path, directory: Path) -> None:
    """Move the app to its place; an empty directory is kept, as someone may be in it."""
    if not directory.exists():
        made.rename(directory)
        return
    for path in made.iterdir():
        shutil.move(path, directory / path.name)


def folder_names(clients: tuple[str, ...]) -> dict[str, str]:
    """The name of each client's directory: letters and digits, all different."""
    result: dict[str, str] = {}
    for name in clients:
        plain = re.sub(r"[^\w.-]+", "-", name).strip("-.") or "client"
        taken, number = {known.lower() for known in result.values()}, 2
        folder = plain
        while folder.lower() in taken:
            folder, number = f"{plain}-{number}", number + 1
        result[name] = folder
    return result


def _write_shared(made: Path, terms: Terms, folders: Mapping[str, str], home: Path) -> None:
    app = made / "fedaccord_app"
    register = "\n".join(
        f"       flwr supernode register clients/{folder}/node.pub --name {shlex.quote(name)}"
        for name, folder in folders.items()
    )
    certificates = json.dumps(str(home.resolve() / "keys" / "ca.pem"))
    files = {
        made / "README.md": _filled("README.md", name=terms.name, register=register),
        made / "pyproject.toml": _filled(
            "pyproject.toml",
            package=re.sub(r"[^a-z0-9]+", "-", terms.name.lower()).strip("-") or "consortium",
            description=_toml(f"{terms.name}: slots on Flower"),
        ),
        made / ".gitignore": _filled("gitignore"),
        made / "flower-home" / "config.toml": _filled("config.toml", certificates=certificates),
        app / "__init__.py": '"""The app of this consortium."""\n',
        app / "server_app.py": _filled("server_app.py"),
        app / "client_app.py": _filled("client_app.py"),
        app / "terms.toml": terms_text(terms),
    }
    made.mkdir()
    (made / "flower-home").mkdir(mode=0o700)  # Flower's database will be there
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def terms_text(terms: Terms) -> str:
    """The terms as a TOML file."""
    given = terms.model_dump(mode="json")
    training, law, public = given.pop("training"), given.pop("law", None), given.pop("public", {})
    given.pop("reports", None)
    keys, audits = given.pop("keys", None), given.pop("audits", None)
    lines = ["# What everyone in the consortium has signed. Nothing in here is secret.", ""]
    for key, value in given.items():
        if key == "agreement":
            lines += [*_ABOUT_REPORTS[terms.reports], _line("reports", terms.reports)]
        lines.append(_line(key, value))
    lines += ["", "[training]", *(_line(key, value) for key, value in training.items())]
    if law is not None:
        lines += ["", *_law_lines(law)]
    for name, numbers in public.items():
        lines += ["", f"[public.{_toml(name)}]"]
        lines += [_line(key, value) for key, value in numbers.items()]
    if keys is not None:
        lines += _key_lines(keys)
    if audits is not None:
        lines += ["", "# How training is audited, and by whom.", *_table_lines("audits", audits)]
    return "\n".join(lines) + "\n"


_ABOUT_REPORTS = {
    "ratio": [
        "",
        "# The amounts are computed from the ratios that clients report. A client that reports a",
        "# lower ratio is asked for less, so this can be gamed (fedaccord misreport says by how",
        '# much). With reports = "none" nobody reports anything, and nobody can.',
    ],
    "none": [
        "",
        "# Nobody reports a private number: what is offered follows from what is public, below,",
        "# and from what clients say to a clock if there is one.",
    ],
}
_TELLS = """\
# Whether the server also learns the discount factor, and can take it into account in its offer.
tell_discount_factor = """


def _key_lines(keys: dict[str, Any]) -> list[str]:
    """Everybody's public key, and how keys were replaced."""
    lines = ["", "# With these, anyone can check who said what.", "[keys]"]
    lines.append(_line("server", keys.pop("server")))
    for table, values in keys.items():
        lines += ["", f"[keys.{table}]"]
        lines += [f"{_toml(name)} = {_toml(value)}" for name, value in values.items()]
    return lines


def _table_lines(name: str, table: dict[str, Any]) -> list[str]:
    """A table and those inside it; what is None is left out."""
    inner = {key: value for key, value in table.items() if isinstance(value, dict) and value}
    plain = {k: v for k, v in table.items() if v is not None and not isinstance(v, dict)}
    lines = [f"[{name}]", *(f"{_toml(key)} = {_toml(value)}" for key, value in plain.items())]
    for key, value in inner.items():
        lines += ["", *_table_lines(f"{name}.{_toml(key)}", value)]
    return lines


def _law_lines(law: dict[str, Any]) -> list[str]:
    """The law as a table, with a line for each of its terms."""
    parts = law.pop("terms")
    inline = [", ".join(_line(key, value) for key, value in part.items()) for part in parts]
    lines = ["[law]", *(_line(key, value) for key, value in law.items())]
    return [*lines, "terms = [", *(f"    {{{part}}}," for part in inline), "]"]


def _write_client(folder: Path, private: Private, terms: Terms) -> None:
    """A client's own file, and the terms for it to sign."""
    if terms.reports == "none":
        learns, tells = "The server learns none of these\n# numbers; it asks for answers only.", ""
    else:
        learns = "The server learns only the ratio\n# valuation / cost_per_sample, and samples."
        tells = _TELLS + ("true" if private.tells_discount_factor else "false") + "\n"
    text = f"""\
# Private: this file stays with {private.name}. {learns}
name = {_toml(private.name)}
valuation = {private.valuation!r}
cost_per_sample = {private.cost_per_sample!r}
samples = {private.samples}
communication_cost = {private.communication_cost!r}
discount_factor = {private.discount_factor!r}
{tells}
# Paths are relative to this file. The terms are the ones that this client signed: it takes part
# under no others. The data is a directory with {private.name}.npz (or .csv) and
# test.npz. The ledger is this client's own copy. The model of each slot is stored under "model".
# With its key this client signs what it says: whoever has the key can speak for it.
terms = "terms.toml"
key = "signing.key"
data = "data"
ledger = "ledger.db"
model = "model.npz"

# To rehearse a slip to 0 samples in slot 2:
# [slips]
# 2 = 0
"""
    folder.parent.mkdir(exist_ok=True)
    folder.mkdir(mode=0o700)  # its data, its copy and its models will be there as well
    path = folder / "client.toml"
    path.touch(mode=0o600)
    path.write_text(text, encoding="utf-8")
    (folder / "terms.toml").write_text(terms_text(terms), encoding="utf-8")


def _write_data(
    clients: Path, folders: Mapping[str, str], privates: list[Private], dataset: Dataset
) -> None:
    """Examples for a rehearsal; no two clients have the same one if there are enough."""
    if problems := [
        f"{private.name}: has {private.samples:,} samples, but {dataset.name} only "
        f"{dataset.size:,} examples"
        for private in privates
        if private.samples > dataset.size
    ]:
        raise InvalidInput(problems)
    drawn = RandomPartition(dataset, [private.samples for private in privates]).draw(1)
    for private, share in zip(privates, drawn, strict=True):
        if "/" in private.name or "\\" in private.name:
            raise InvalidInput(f"{private.name}: cannot be the name of a file")
        folder = clients / folders[private.name] / "data"
        folder.mkdir()
        own, test = (dataset.inputs[share], dataset.labels[share]), dataset
        np.savez(folder / f"{private.name}.npz", inputs=own[0], labels=own[1])
        np.savez(folder / "test.npz", inputs=test.test_inputs, labels=test.test_labels)


def _filled(name: str, /, **words: str) -> str:
    text = (resources.files("fedaccord.flower") / "app_files" / f"{name}.txt").read_text("utf-8")
    return Template(text).substitute(words) if words else text.replace("$$", "$")


def _line(key: str, value: Any) -> str:
    return f"{key} = {_toml(FOR_EVER if value is None else value)}"


def _toml(value: Any) -> str:
    """JSON strings, numbers and lists are valid TOML."""
    return json.dumps(value, ensure_ascii=False)
