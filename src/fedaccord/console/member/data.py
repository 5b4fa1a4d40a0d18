"""The member's data: what form it has, what is there, uploading it, and examples to rehearse with.

Data goes from the browser to a folder on the same machine, and nowhere else.
"""

import shutil
import tempfile
from pathlib import Path
from typing import Annotated

import numpy as np
import numpy.typing as npt
from fastapi import APIRouter, File, Request, UploadFile
from starlette.responses import RedirectResponse, Response

from fedaccord.console.member.home import Home
from fedaccord.console.web.rehearsals import rehearsal_for
from fedaccord.data.dataset import Dataset, load_dataset
from fedaccord.data.scale import scaled_sizes
from fedaccord.deployment.data_format import describe_data, save_examples
from fedaccord.deployment.stand_ins import rehearsal_dataset
from fedaccord.errors import FedaccordError, InvalidInput
from fedaccord.flower.client_file import ClientFile, FileTraining
from fedaccord.protocol.terms import Terms

router = APIRouter()
KINDS = (".npz", ".csv")


def has_data(home: Home) -> bool:
    """Whether there is a file that this member could train on."""
    file = home.file
    folder = home.directory / file.data
    return any((folder / f"{file.name}{kind}").is_file() for kind in KINDS)


def what_is_there(home: Home, file: ClientFile | None = None) -> str:
    """The examples in the member's folder, in a sentence, or why they cannot be used."""
    file = file or home.file
    terms = home.terms
    own = FileTraining(file, home.directory, terms).examples
    size, needed = own.sizes[0], scaled_sizes([file.samples], terms.training.scale)[0]
    if size < needed:
        raise InvalidInput(f"{size:,} examples are too few for {file.samples:,} samples")
    return (
        f"{size:,} examples to train on, and {len(own.dataset.test_labels):,} to measure with. "
        f"Your numbers say {file.samples:,} samples."
    )


def take_files(home: Home, files: dict[str, tuple[str, Path]]) -> None:
    """Put files into the member's folder if they can be used together with what is there.

    `files` are suffixes and contents by what each is: the member's own examples, or the test's.
    """
    file = home.file
    folder = home.directory / file.data
    with home.changing, tempfile.TemporaryDirectory(prefix=".", dir=home.directory) as fresh:
        tried = Path(fresh) / "data"
        if folder.is_dir():
            shutil.copytree(folder, tried)
        tried.mkdir(exist_ok=True)
        for stem, (suffix, content) in files.items():
            for kind in KINDS:
                (tried / f"{stem}{kind}").unlink(missing_ok=True)
            shutil.copyfile(content, tried / f"{stem}{suffix}")
        try:
            what_is_there(home, file.model_copy(update={"data": str(tried)}))
        except InvalidInput as error:
            raise InvalidInput(str(error).replace(f"{tried}/", "")) from None
        old = Path(fresh) / "old"
        if folder.is_dir():
            folder.rename(old)
        tried.rename(folder)


def built_in(home: Home) -> None:
    """Deal examples out to this member, so that a rehearsal needs no data of its own.

    Everyone's share is drawn with the seed of the terms: members with few samples get different
    ones. Who has more than its share gets some that others have as well.
    """
    file, terms = home.file, home.terms
    dataset = _examples(terms)
    needed = scaled_sizes([file.samples], terms.training.scale)[0]
    if needed > dataset.size:
        raise InvalidInput(
            f"there are {dataset.size:,} examples to rehearse with, and your numbers say "
            f"{file.samples:,} samples: for a rehearsal, enter fewer"
        )
    chosen = _share(dataset.size, terms, file.name, needed)
    with tempfile.TemporaryDirectory() as folder:
        own, test = Path(folder) / "own.npz", Path(folder) / "test.npz"
        save_examples(own, dataset.inputs[chosen], dataset.labels[chosen], terms)
        save_examples(test, dataset.test_inputs, dataset.test_labels, terms)
        take_files(home, {file.name: (".npz", own), "test": (".npz", test)})


def _examples(terms: Terms) -> Dataset:
    name = rehearsal_for(terms.training)
    return rehearsal_dataset(terms) if name is None else load_dataset(name)


def _share(size: int, terms: Terms, name: str, needed: int) -> npt.NDArray[np.int64]:
    order = np.random.default_rng(terms.training.seed).permutation(size)
    place, everyone = terms.clients.index(name), len(terms.clients)
    return np.roll(order, -(place * size // everyone))[:needed]


# --- Pages ---------------------------------------------------------------------------------


@router.get("/data", response_class=Response)
def data(request: Request) -> Response:
    """What there is, and what there should be."""
    return _page(request)


@router.post("/data/upload", response_class=Response)
def upload(
    request: Request,
    own: Annotated[UploadFile | None, File()] = None,
    test: Annotated[UploadFile | None, File()] = None,
) -> Response:
    """Take the member's examples, those to measure with, or both."""
    home: Home = request.app.state.home
    given = {home.file.name: own, "test": test}
    try:
        with tempfile.TemporaryDirectory() as folder:
            files = {
                stem: _received(one, Path(folder) / str(n))
                for n, (stem, one) in enumerate(given.items())
                if one is not None and one.filename
            }
            if not files:
                raise InvalidInput("choose a file")
            take_files(home, files)
    except FedaccordError as error:
        return _page(request, wrong=str(error), status=422)
    return RedirectResponse("/data", 303)


def _received(upload: UploadFile, place: Path) -> tuple[str, Path]:
    suffix = Path(upload.filename or "").suffix.lower()
    if suffix not in KINDS:
        raise InvalidInput(f"{upload.filename}: must be a file .npz or .csv")
    with place.open("wb") as file:
        shutil.copyfileobj(upload.file, file)
    return suffix, place


@router.post("/data/examples", response_class=Response)
def use_examples(request: Request) -> Response:
    """Use examples of a public data set, or made-up ones, for a rehearsal."""
    try:
        built_in(request.app.state.home)
    except FedaccordError as error:
        return _page(request, wrong=str(error), status=422)
    return RedirectResponse("/data", 303)


def _page(request: Request, *, wrong: str = "", status: int = 200) -> Response:
    home: Home = request.app.state.home
    if not home.exists:
        return RedirectResponse("/join", 303)
    found, problem = "", ""
    if has_data(home):
        try:
            found = what_is_there(home)
        except FedaccordError as error:
            problem = str(error)
    file, terms = home.file, home.terms
    response: Response = request.app.state.pages.show(
        request,
        "data.html.j2",
        status,
        title="Your data",
        current="data",
        own=file,
        folder=home.directory / file.data,
        found=found,
        problem=problem,
        wrong=wrong,
        training=terms.training,
        rehearsal=rehearsal_for(terms.training),
        described=describe_data(file.private, terms),
    )
    return response
