# SPDX-License-Identifier: Apache-2.0
"""The site that `make docs` built, as a reader sees it in Chromium: WHERRY_SITE names its folder."""

import functools
import http.server
import os
import re
import threading
from pathlib import Path

import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

SITE = Path(os.environ["WHERRY_SITE"]).resolve()
PATIENCE = 120
OPTIONS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--window-size=1400,900",
           # Whatever asks for another host fails.
           "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1")
FETCHED = re.compile(r"""<(?:script|img|link|iframe)\b[^>]*\b(?:src|href)=["']?(https?:[^"' >]+)""")


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def address():
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=SITE)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture(scope="module")
def browser():
    options = webdriver.ChromeOptions()
    for option in OPTIONS:
        options.add_argument(option)
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService("/usr/bin/chromedriver"))
    yield driver
    driver.quit()


def found(browser, address, words):
    """The pages that a search for some words lists, best first."""
    browser.get(f"{address}/index.html?q={words}")
    links = WebDriverWait(browser, PATIENCE).until(
        lambda driver: driver.find_elements(By.CSS_SELECTOR, ".md-search-result__item > .md-search-result__link"))
    return [link.get_attribute("href").removeprefix(address + "/").split("?")[0] for link in links]


def test_the_front_page_shows_the_readme(browser, address):
    browser.get(f"{address}/index.html")
    assert browser.find_element(By.TAG_NAME, "h1").text.startswith("Wherry")
    assert "make demo" in browser.find_element(By.TAG_NAME, "article").text
    assert browser.save_screenshot(str(SITE.parent / "front.png"))


def test_a_page_that_is_named_in_backticks_is_a_link(browser, address):
    browser.get(f"{address}/docs/index.html")
    browser.find_element(By.LINK_TEXT, "docs/network.md").click()
    WebDriverWait(browser, PATIENCE).until(lambda driver: driver.current_url.endswith("/docs/network.html"))


@pytest.mark.parametrize("words, page", [("mailbox", "docs/design/mailboxes.html"), ("WHERRY_HOSTS", "docs/network.html"),
                                         ("wherry_poller_wait", "api/poller_8h.html"), ("wherry ship", "man/wherry-ship.1.html")])
def test_a_search_finds_the_page(browser, address, words, page):
    assert page in found(browser, address, words)


def test_the_reference_says_what_a_header_says(browser, address):
    browser.get(f"{address}/api/classwherry_1_1Stream.html")
    text = browser.find_element(By.TAG_NAME, "article").text
    assert "#include <wherry/stream.hpp>" in text and "A connected, ordered, reliable byte stream" in text


def test_the_reference_of_python_says_what_the_package_says(browser, address):
    browser.get(f"{address}/python/index.html")
    article = browser.find_element(By.TAG_NAME, "article").text
    if "It is not part of this build" in article:
        pytest.skip("the Python package is not built")
    assert "try_receive" in article and "FramedStream" in article


def test_a_man_page_has_the_options_of_the_program(browser, address):
    browser.get(f"{address}/man/wherry-ship.1.html")
    assert "--help" in browser.find_element(By.TAG_NAME, "article").text


def test_no_page_fetches_anything_from_another_host():
    fetched = {address for page in SITE.rglob("*.html") for address in FETCHED.findall(page.read_text())}
    assert fetched == set()
