"""Everything that a member needs for a slot, looked at in the order in which it is needed."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

from fedaccord.data.dataset import Dataset
from fedaccord.deployment.admission import Signed, load_signed
from fedaccord.deployment.check import Finding, Findings, attempt, note, ok, wrong
from fedaccord.deployment.surroundings import (
    check_certificate,
    check_disk,
    check_private,
    check_versions,
)
from fedaccord.errors import FedaccordError
from fedaccord.flower.client_file import ClientFile, FileTraining, load_client_file
from fedaccord.numbers import count
from fedaccord.protocol.parameters import Arrays
from fedaccord.protocol.terms import Terms, load_terms
from fedaccord.signing.keys import load_key
from fedaccord.training.code import is_here, split_name

_TRIED = 1_000
"""How many examples one local step is tried with at most."""
_CODE = "ask the coordinator for the code that was agreed on, and put it beside client.toml"
_SIGN = "ask the coordinator for to-sign.toml, and run `fedaccord member sign`"


def check_member(member: Path, *, offline: bool = False) -> Iterator[Finding]:
    """What is right and wrong in a member's directory, and on its way to the server."""
    try:
        file = load_client_file(member / "client.toml")
        terms = load_terms(member / file.terms)
    except FedaccordError as error:
        yield wrong("files", str(error), "correct the file, or make the directory again")
        return
    yield ok("files", f"client.toml and {file.terms} of {file.name} can be read")
    yield from check_versions()
    yield check_disk(member)
    looks: list[tuple[str, Callable[[], Findings], str]] = [
        ("terms", lambda: _check_terms(member, file, terms), _SIGN),
        ("keys", lambda: _check_keys(member, file, terms), "make the directory again"),
        ("certificate", lambda: _check_own_certificate(member, file), _RENEW),
        ("data", lambda: _check_data(member, file, terms), "README.md describes the form"),
        ("training", lambda: _check_training(member, file, terms), _CODE),
    ]
    for about, look, do in looks:
        findings = list(attempt(about, look, do))
        yield from findings
        if about == "data" and any(finding.grade == "wrong" for finding in findings):
            break  # there is nothing to train on
    if not offline:
        from fedaccord.deployment.reaching import check_server

        yield from check_server(member, file)


# --- Terms and keys ------------------------------------------------------------------------


def _check_terms(member: Path, file: ClientFile, terms: Terms) -> Iterator[Finding]:
    """Whether the terms are those that this member signed, and who else signed them."""
    if file.name not in terms.clients:
        yield wrong(
            "terms", f"there is no {file.name!r} in the terms", "correct name in client.toml"
        )
        return
    signed = load_signed(member, terms)
    if signed.own is None:
        found = "this member has not signed the terms"
        if signed.outdated:
            found = "the terms were changed after this member signed them"
        yield wrong("terms", found, _SIGN)
        return
    if file.app != signed.own.app:
        yield wrong("terms", "app in client.toml is not the one that was signed", _SIGN)
        return
    yield ok("terms", f"signed by {file.name}: {terms.digest[:16]}, with the app {file.app[:16]}")
    yield _others(signed, terms, file.name)


def _others(signed: Signed, terms: Terms, own: str) -> Finding:
    """Who else signed the same, as far as this member has seen it."""
    others = [name for name in terms.clients if name != own and name in signed.others]
    missing = [name for name in terms.clients if name != own and name not in signed.others]
    if not missing:
        return ok("signatures", f"everyone signed the same: {', '.join(others)} too")
    seen = f"{len(others)} of {len(terms.clients) - 1} others" if others else "no other member"
    return note(
        "signatures",
        f"of {seen} is the signature here; missing: {', '.join(missing)}",
        "ask the coordinator for signatures.json, and put it into this directory",
    )


def _check_keys(member: Path, file: ClientFile, terms: Terms) -> Iterator[Finding]:
    from fedaccord.flower.node import load_node_key

    key = load_key(member / file.key)
    load_node_key(member / file.node_key)
    for name in ("client.toml", file.key, file.node_key):
        finding = check_private("keys", member / name)
        if finding.grade != "ok":
            yield finding
    if terms.keys is None:
        yield note(
            "keys",
            "the terms have no keys yet",
            "send card.json to the coordinator, if you have not yet",
        )
    elif terms.keys.clients.get(file.name) != key.public:
        yield wrong(
            "keys",
            f"the terms have another key for {file.name} than {file.key}",
            "ask the coordinator whose key that is, and sign nothing before you know",
        )
    else:
        yield ok("keys", f"the terms have the key of {file.name}")


_RENEW = "run `fedaccord member renew`, and send card.json to the coordinator"


def _check_own_certificate(member: Path, file: ClientFile) -> Iterator[Finding]:
    if file.certificate is None:
        yield note("certificate", "client.toml names none", "the server's proxy will ask for one")
        return
    yield from check_certificate("certificate", member / file.certificate, _RENEW)
    yield from check_certificate(
        "the server's", member / file.authority, "ask the coordinator for the new to-sign.toml"
    )


# --- Data and training ---------------------------------------------------------------------


def _check_data(member: Path, file: ClientFile, terms: Terms) -> Iterator[Finding]:
    from fedaccord.data.inputs import scale_note

    training = FileTraining(file, member, terms)
    own = training.examples
    shape = " x ".join(map(str, terms.training.shape))
    of_test = f", {len(own.tests[0]):,} of them its own test" if own.tests else ""
    yield ok(
        "data",
        f"{own.sizes[0]:,} examples of {shape} with {_labels_in(own.dataset, terms)}, and "
        f"{len(own.dataset.test_labels):,} to test with{of_test}; samples says {file.samples:,}",
    )
    if (scales := scale_note(own.dataset)) is not None:
        yield note("data", scales, "rescale the features, as all members agreed to")


def _labels_in(data: Dataset, terms: Terms) -> str:
    """Which of the labels a member has, or how many events."""
    if data.survival:
        return count(int((data.labels > 0).sum()), "event")
    return f"{len(set(data.labels.tolist()))} of {terms.training.classes} labels"


def _check_training(member: Path, file: ClientFile, terms: Terms) -> Iterator[Finding]:
    """Build the task, and take one step from where it starts; then fine-tune, if it is to.

    The code of a file comes with the server's app, so it need not be here before the first slot.
    """
    task = terms.training.task
    if terms.training.code is not None and not is_here(task, [member]):
        module = split_name(task)[0]
        if "." in module:
            package = module.split(".")[0]
            found = f"{task}: the package {package} is not installed here"
            yield wrong("training", found, f"install {package} in the version that was agreed on")
        else:
            yield note(
                "training",
                f"not tried: the code of {task} is not here; a file comes with the server's app "
                "when a slot begins",
                f"to try it now, ask the coordinator for {module}.py, and put it beside "
                "client.toml; if it is a package, install it",
            )
        return
    training = FileTraining(file, member, terms)
    amount = min(_TRIED, file.samples)
    start = {name: value.numpy() for name, value in training.model.start(0).items()}
    began = time.perf_counter()
    training(1, 1, amount, start)
    seconds = time.perf_counter() - began
    whole = seconds * file.samples / amount
    yield ok(
        "training", f"{terms.training.task}: a step on {amount:,} samples took {seconds:.2f} s"
    )
    if whole > terms.training_seconds:
        yield wrong(
            "training",
            f"a round on all {file.samples:,} samples would take about {whole:,.0f} s, and the "
            f"terms allow {terms.training_seconds:,.0f} s",
            "use a faster machine, or agree on a larger training_seconds",
        )
    if file.fine_tune is not None:
        yield _check_fine_tuning(training, amount, start, file.fine_tune)


def _check_fine_tuning(training: FileTraining, amount: int, start: Arrays, epochs: int) -> Finding:
    """The server hears that the model arrived only when the member has fine-tuned it."""
    began = time.perf_counter()
    training.try_fine_tuning(amount, start)
    seconds = (time.perf_counter() - began) * epochs * training.file.samples / amount
    limit = training.terms.answer_seconds
    found = f"{count(epochs, 'epoch')} on all samples would take about {seconds:,.1f} s"
    if seconds > limit:
        return wrong(
            "fine-tuning",
            f"{found}, and the server waits {limit:,.0f} s for an answer",
            "lower fine_tune in client.toml",
        )
    return ok("fine-tuning", found)
