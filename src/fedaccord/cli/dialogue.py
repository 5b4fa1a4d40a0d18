"""The questions of the interview, one by one on a terminal."""

from typing import TYPE_CHECKING, Any

import typer

from fedaccord.checks import escaped
from fedaccord.cli.console import INTERRUPTED
from fedaccord.errors import FedaccordError, InvalidInput

if TYPE_CHECKING:
    from fedaccord.interviews.questions import Question

_WELCOME = """\
Numbers may be ranges: 5-8, or 600 give or take 30 %. Enter alone skips a question.
Type back to return to the question before, or stop to end; then nothing is written.
"""
_STOPPED = "Stopped; nothing was written."


def ask_all(known: dict[str, Any]) -> dict[str, Any]:
    """The answers that are known already, and those to all other questions that are needed."""
    from fedaccord.interviews.questions import QUESTIONS

    typer.echo(_WELCOME)
    given, asked = {"sure": [], **known}, list[str]()
    while True:
        left = (q for q in QUESTIONS if q.spoken and q.key not in (*given, *asked))
        question = next((q for q in left if q.asked(given)), None)
        if question is None:
            return given
        reply = _ask(question, len(asked) + 1, given)
        if reply != "back":
            asked.append(question.key)
            given |= {question.key: reply} if reply else {}
        elif asked:
            last = asked.pop()
            given.pop(last, None)
            given["sure"] = [key for key in given["sure"] if key != last]
        else:
            typer.echo("   This is the first question.\n")


def _ask(question: "Question", number: int, given: dict[str, Any]) -> str:
    """The answer to one question; empty if it was skipped, and "back" to return.

    An answer that is unlikely is asked about again, and then among those that are `sure`.
    """
    typer.echo(f"{number}. {question.asks}\n   {question.meaning}{_on_enter(question, given)}")
    reply = reply_to("   > ")
    while True:
        if reply == "back":
            return reply
        if reply:
            try:
                typer.echo(f"   {_understood(question.read(reply, given))}")
            except InvalidInput as error:
                typer.echo(f"   {escaped(error.problems[0].message)}")
                reply = reply_to("   > ")
                continue
        elif not question.may_be_skipped(given):
            typer.echo("   This one needs an answer.")
            reply = reply_to("   > ")
            continue
        doubt = _unlikely(question.key, given | ({question.key: reply} if reply else {}))
        if doubt:
            typer.echo(f"   {escaped(doubt)}\n   (Enter: it is right; or type another answer)")
            if again := reply_to("   > "):
                reply = again
                continue
            given["sure"] = [*given["sure"], question.key]
        typer.echo("")
        return reply


def _unlikely(key: str, given: dict[str, Any]) -> str:
    """What to ask about the answer to a question, if it is an unlikely one."""
    from fedaccord.files.questions import unusual
    from fedaccord.interviews.answers import answers_so_far
    from fedaccord.interviews.doubts import unlikely_in

    answers, _ = answers_so_far(given)
    currency = str(answers.values.get("currency", ""))
    asked = unusual(unlikely_in(given, answers), [""], currency, answers.sure)
    return next((each.text for each in asked if each.key == key), "")


def _on_enter(question: "Question", given: dict[str, Any]) -> str:
    """What happens if the question is skipped."""
    from fedaccord.interviews.questions import BY_KEY, alternatives_to

    if not question.may_be_skipped(given):
        return ""
    if alternatives_to(question):
        return "\n   (Enter: the next question asks it in another way)"
    assumed = question.assumed or BY_KEY[question.instead_of].assumed
    return f"\n   (Enter: {assumed})"


def _understood(value: Any) -> str:
    """What an answer means, in other words than it was given."""
    from fedaccord.files.ranges import Range, spelled

    if not isinstance(value, Range):
        return f"= {escaped(str(value))}"
    low, likely, high = map(spelled, value)
    return f"= {likely}" if value.exact else f"= {likely}, from {low} to {high}"


def reply_to(prompt: str) -> str:
    """A line from the terminal. Ends the program on "stop", Ctrl-C and the end of the input."""
    try:
        reply = input(prompt).strip()
    except KeyboardInterrupt:
        typer.echo(f"\n{_STOPPED}", err=True)
        raise
    except EOFError:
        raise FedaccordError(
            "the interview ended before its last question, and nothing was written; without a "
            "terminal, give the answers as options or with --answers"
        ) from None
    if reply.lower() == "stop":
        typer.echo(_STOPPED)
        raise typer.Exit(INTERRUPTED)
    return "back" if reply.lower() == "back" else reply
