"""A real browser for tests of pages, and a server in a thread of its own."""

import re
import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import axe_playwright_python
import uvicorn
from fastapi import FastAPI
from playwright.sync_api import Browser, Page, expect, sync_playwright

from fedaccord.console.web.serving import listen

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
NO_CHROMIUM = "chromium is not installed (on Debian: apt-get install chromium)"
DESKTOP = {"width": 1280, "height": 900}
PHONE = {"width": 375, "height": 780}
PATIENCE = 60_000
"""Milliseconds to wait for something to appear; long, since test machines can be busy."""
AXE = (Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text("utf-8")


@contextmanager
def chromium() -> Iterator[Browser]:
    """The browser."""
    assert CHROMIUM is not None
    expect.set_options(timeout=PATIENCE)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def served(app: FastAPI) -> Iterator[str]:
    """The address of an application that runs in a thread, without the last slash."""
    at = listen("127.0.0.1", 0)
    server = uvicorn.Server(
        uvicorn.Config(
            app,
            log_level="warning",
            http="h11",
            h11_max_incomplete_event_size=256 * 1024,
            timeout_graceful_shutdown=1,
        )
    )
    thread = threading.Thread(target=server.run, kwargs={"sockets": [at]}, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{at.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(10)
        at.close()


@contextmanager
def visitor(browser: Browser, *, phone: bool = False, scripts: bool = True) -> Iterator[Page]:
    """A page in a context of its own; whatever the browser complains about fails the test."""
    context = browser.new_context(
        viewport=PHONE if phone else DESKTOP,  # type: ignore[arg-type]
        java_script_enabled=scripts,
        accept_downloads=True,
    )
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    complaints: list[str] = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("console", lambda said: _note(said, complaints))
    try:
        yield page
        assert complaints == []
    finally:
        context.close()


def _note(said: Any, complaints: list[str]) -> None:
    refused = "the server responded with a status of" in said.text  # a page may be refused
    if said.type in ("error", "warning") and not refused:
        complaints.append(said.text)


def check_page(page: Page) -> None:
    """No serious violation of accessibility, no id twice, and nothing wider than the screen."""
    page.wait_for_load_state("load")
    if page.evaluate("document.documentElement.classList.contains('js')"):
        _check(page)
    else:
        with _copied(page) as copy:
            _check(copy)


@contextmanager
def _copied(page: Page) -> Iterator[Page]:
    """A page that may not run scripts, where axe's can run; without scripts of its own."""
    assert page.context.browser is not None
    text = re.sub(r"<script\b.*?</script>", "", page.content(), flags=re.DOTALL)
    state = page.context.storage_state()
    context = page.context.browser.new_context(viewport=page.viewport_size, storage_state=state)
    try:
        copy = context.new_page()
        kind = "text/html; charset=utf-8"
        address = page.url.partition("#")[0]
        copy.route(address, lambda route: route.fulfill(body=text, content_type=kind))
        copy.goto(address)
        yield copy
    finally:
        context.close()


def _check(page: Page) -> None:
    ids = page.locator("[id]:not(svg *)").evaluate_all("all => all.map((one) => one.id)")
    assert len(set(ids)) == len(ids), sorted(one for one in set(ids) if ids.count(one) > 1)
    page.evaluate(f"{AXE}; undefined")
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    serious = [
        f"{one['id']}: {node['html'][:200]}"
        for one in found["violations"]
        if one["impact"] in ("serious", "critical")
        for node in one["nodes"]
    ]
    assert not serious, f"{page.url}: {serious}"
    wide = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
    assert wide <= 0, f"{page.url} is {wide} pixels too wide"


def tab_to(page: Page, what: str) -> None:
    """Press Tab until something with this text or this id has the focus, and shows it."""
    for _ in range(120):
        page.keyboard.press("Tab")
        name, text, outline = page.evaluate(
            "(one => [one.id, one.textContent.trim(), getComputedStyle(one).outlineStyle])"
            "(document.activeElement)"
        )
        if what in (f"#{name}", text):
            assert outline != "none", f"nobody sees that {what} has the focus"
            return
    raise AssertionError(f"{what} cannot be reached with Tab")
