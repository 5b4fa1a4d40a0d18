"""`fedaccord certify`: the proof of a profile, or who would not keep to it."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fedaccord.cli.console import output, say_where_from, working
from fedaccord.cli.monitoring_options import MonitoringOptions
from fedaccord.cli.options import (
    AllOption,
    AnyPunishmentOptions,
    FormatOption,
    PaperOptions,
    ReportOption,
    choose_consortium,
    with_option_groups,
)
from fedaccord.cli.outputs import check_writable, write_report
from fedaccord.errors import InvalidInput

if TYPE_CHECKING:
    from fedaccord.agreement.agreement import Agreement
    from fedaccord.agreement.monitoring import Monitoring
    from fedaccord.agreement.punishment import Punishment
    from fedaccord.game.consortium import Consortium


@with_option_groups
def certify(
    files: Annotated[
        list[Path] | None, typer.Argument(metavar="[FILE] PROFILE", hidden=True)
    ] = None,
    *,
    punishment: AnyPunishmentOptions,
    monitoring: MonitoringOptions,
    setting: PaperOptions,
    output_format: FormatOption = "text",
    report: ReportOption = None,
    every: AllOption = False,
) -> None:
    """Prove or refute any profile, from the cost function alone.

    FILE describes the consortium, in TOML; without it the paper's setting is used. PROFILE lists
    the contributions: CSV with the columns name and contribution, or the JSON that solve prints,
    which also states the punishment. Contributions alone are judged with suspension for a slot, and
    in the paper's setting with reversion for ever, unless you say otherwise.

    The exit code is 0 if the profile is proved to hold, and 1 if it is refuted. In that case the
    output lists who would slip or contribute more, and what they would gain and lose.
    """
    if not files or len(files) > 2:
        raise typer.BadParameter("expects a profile, or a consortium file and a profile")
    *first, profile = files
    file = first[0] if first else None
    if file is None and profile.suffix == ".toml":
        raise typer.BadParameter(f"PROFILE is missing: {profile} is the consortium's FILE")
    check_writable(report, inputs=files)
    consortium = choose_consortium(file, setting)

    import fedaccord as fa

    usual, seen = punishment.chosen(file), monitoring.chosen(consortium.names)
    with working("Reading"):
        named = usual if punishment.given else None
        asked = file is not None or setting.paper
        watched = seen if monitoring.given else None
        agreement = _load(profile, consortium, (named, watched), asked=asked)
        if agreement.kind == "given":  # contributions only, which say nothing of a punishment
            agreement = replace(agreement, punishment=usual, ranges=consortium.ranges)
    with working("Proving"):
        certificate = fa.certify(agreement)
    if report is not None:
        write_report(report, certificate, source=file)

    say_where_from(file, setting.paper, output_format)
    if output_format == "json":
        from fedaccord.cli.outputs import certificate_record, to_json

        typer.echo(to_json(certificate_record(certificate), consortium.size))
    else:
        from fedaccord.cli.tables import print_certificate, print_consortium

        print_consortium(output(), consortium)
        print_certificate(output(), certificate, every)
    if not certificate.holds:
        raise typer.Exit(1)


def _load(
    profile: Path,
    consortium: "Consortium",
    terms: "tuple[Punishment | None, Monitoring | None]",
    *,
    asked: bool,
) -> "Agreement":
    """What is to be proved; `asked` says whether the user asked for this consortium."""
    import fedaccord as fa

    try:
        return fa.load_agreement(profile, consortium, *terms)
    except InvalidInput as error:
        if asked:
            raise
        source = f"against the paper's setting (no FILE was given): {profile}"
        raise InvalidInput(error.problems, source) from None
