"""The web page of `bulkhead serve`, in a headless Chromium: what a person sees and does, and what no page of another
tenant or site gets."""

import http.client
import json
import threading
import time
import unittest

from browser import Browser
from host import patience, wait_until
from http_server import TenantServer
from world import World

SLOW = "import time\nprint('started', flush=True)\ntime.sleep(100)"
EVIL = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>"
ESCAPES = "\x1b[31mred\x1b]0;title\x07\u202eevil"

browser = None


def setUpModule():
    global browser
    browser = Browser()


def tearDownModule():
    browser.close()


# Tests that wait for something ask again and again.
OFTEN_ASKED = "[tenants.{}.limits]\nrequests_per_second = 1000\nburst = 1000\n"


class PageTest(unittest.TestCase):
    """A server with two tenants, one of whom looks at the page."""

    @classmethod
    def setUpClass(cls):
        cls.world = World({})
        cls.server = TenantServer(cls.world, {name: OFTEN_ASKED.format(name) for name in ("ann", "bob")},
                                  MCP_BRIDGE_LEDGER="full")
        cls.give_recorder("ann")

    @classmethod
    def tearDownClass(cls):
        cls.server.end_well()

    @classmethod
    def give_recorder(cls, tenant):
        entry = cls.world.recorder("record")
        cls.world.write_config(f"tenants/{tenant}/servers.json", {"mcpServers": {"recorder": entry}})
        cls.world.settle()

    def setUp(self):
        self.ann = self.server.of("ann")
        self.bob = self.server.of("bob")
        self.page = f"http://127.0.0.1:{self.server.port}/ui/"

    def tearDown(self):
        # A file that is missing, a script that fails, a policy that is broken: the browser tells.
        told = [each for each in browser.heard if "401" not in each]
        self.assertEqual(told, [], self.server.log_text()[-2000:])

    def log_in(self, tenant="ann", **options):
        browser.open(viewport={"width": 1200, "height": 900}, **options)
        browser.run("await page.goto(given.url); await page.fill('#token', given.token);"
                    "await page.click('#log-in button[type=submit]'); await page.waitForSelector('#panels:visible')",
                    url=self.page, token=self.server.tokens[tenant])

    def wait_for(self, selector):
        browser.run("await page.waitForSelector(given.selector, {timeout: given.time})", selector=selector,
                    time=patience(30) * 1000)

    def text(self, selector):
        return browser.run("return await page.textContent(given.selector)", selector=selector)

    def click(self, selector):
        browser.run("await page.click(given.selector, {timeout: given.time})", selector=selector,
                    time=patience(30) * 1000)

    def run_code(self, code, client=None, **arguments):
        """Runs it to its end; the answer's structured content."""
        return (client or self.ann).run_modern(code, **arguments).result()["structuredContent"]

    def in_background(self, code, client=None):
        """A run that goes on; what `result()` gives once it has ended."""
        answers = []
        thread = threading.Thread(target=lambda: answers.append(self.run_code(code, client)))
        thread.start()
        self.addCleanup(thread.join, patience(60))

        def result():
            thread.join(patience(60))
            self.assertTrue(answers, "no answer")
            return answers[0]

        return result

    def api(self, path, tenant="ann", method="GET", headers=None, body=None):
        """What the page's own interface answers: status, headers, bytes."""
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=patience(30))
        token = {"Authorization": f"Bearer {self.server.tokens[tenant]}"} if tenant else {}
        connection.request(method, f"/ui/{path}", body, {**token, **(headers or {})})
        answer = connection.getresponse()
        content = answer.read()
        connection.close()
        return answer.status, answer.headers, content

    def state(self, tenant="ann"):
        status, _, content = self.api("api/state", tenant)
        self.assertEqual(status, 200, content)
        return json.loads(content)

    def running(self, tenant="ann"):
        return self.state(tenant)["runs"]["running"]

    def open_newest(self):
        """Opens the run that ended last; earlier ones may be shown for a moment more."""
        run = self.state()["runs"]["ended"][0]["run"]
        self.click(f"#ended button[title='{run}']")

    def wait_for_running(self, tenant="ann"):
        return wait_until(lambda: [run for run in self.running(tenant) if run["stage"] == "running"], 60,
                          "a run goes on")[0]["run"]


class LoggingIn(PageTest):
    def test_the_page_holds_nothing_and_a_wrong_token_opens_nothing(self):
        browser.open()
        browser.run("await page.goto(given.url); await page.fill('#token', 'wrong');"
                    "await page.click('#log-in button[type=submit]')", url=self.page)
        self.wait_for("#log-in-error:not(:empty)")
        self.assertIn("token", self.text("#log-in-error"))
        self.assertFalse(browser.run("return await page.isVisible('#panels')"))

    def test_the_token_is_in_no_address_and_goes_with_the_page(self):
        self.log_in()
        self.assertEqual(self.text("#tenant"), "ann")
        self.assertEqual(browser.run("return page.url()"), self.page)
        kept = browser.run("return await page.evaluate(() => JSON.stringify([{...localStorage}, {...sessionStorage},"
                           "document.cookie]))")
        self.assertNotIn(self.server.tokens["ann"], kept)
        browser.run("await page.reload()")
        self.wait_for("#log-in:visible")
        self.assertNotIn(self.server.tokens["ann"], self.server.log_text())

    def test_who_wants_it_stays_logged_in_until_the_tab_is_closed(self):
        self.log_in()
        self.click("#log-out")
        browser.run("await page.check('#keep'); await page.fill('#token', given.token);"
                    "await page.click('#log-in button[type=submit]'); await page.waitForSelector('#panels:visible');"
                    "await page.reload(); await page.waitForSelector('#panels:visible')",
                    token=self.server.tokens["ann"])
        self.click("#log-out")
        self.wait_for("#log-in:visible")
        browser.run("await page.reload()")
        self.wait_for("#log-in:visible")


class Looking(PageTest):
    def test_a_run_appears_live_and_its_output_can_be_opened(self):
        for theme in ("light", "dark"):
            with self.subTest(theme=theme):
                self.log_in(colorScheme=theme)
                result = self.in_background("import time\nfor i in range(40):\n    print('tick', i, flush=True)\n"
                                            "    time.sleep(0.25)\n")
                run = self.wait_for_running()
                self.click(f"#running tr[data-key='{run}'] button.link")
                self.wait_for("#run-body pre:has-text('tick')")
                browser.screenshot(f"web-page-run-{theme}")
                self.assertEqual(result()["status"], "success")
                self.wait_for("#run-body pre:has-text('tick 39')")
                browser.run("await page.keyboard.press('Escape')")
                self.wait_for(f"#ended tr[data-key='{run}'] .outcome.success")
                self.wait_for("#outcomes svg rect.s-success")
                browser.screenshot(f"web-page-{theme}")

    def test_what_code_writes_and_names_is_text_and_nothing_else(self):
        self.log_in()
        made = self.run_code("import sys\nfrom mcp.runtime import save_file\n"
                             f"print({EVIL!r})\nprint({ESCAPES!r}, file=sys.stderr)\n"
                             f"save_file('<b>{ESCAPES[1:5]}.html', {EVIL!r}.encode())\n"
                             f"raise RuntimeError({EVIL!r})")
        self.assertEqual(made["status"], "error")
        self.open_newest()
        self.wait_for("#run-body pre[aria-label=stdout]")
        self.assertEqual(self.text("#run-body pre[aria-label=stdout]"), EVIL + "\n")
        errors = self.text("#run-body pre[aria-label=stderr]")
        for hidden in ("\x1b", "\x07", "\u202e"):
            self.assertNotIn(hidden, errors)
        self.assertIn("red", errors)
        self.assertIn("<img", self.text("#run-body pre[aria-label=Error]"))
        self.assertIn("<b>", self.text("#run-body .files"))
        self.assertEqual(browser.run("return await page.locator('#run img, #run script, #run b').count()"), 0)
        self.assertIn("Bulkhead", browser.run("return await page.title()"))
        self.assertNotEqual(browser.run("return await page.title()"), "owned")

    def test_artifacts_are_saved_and_images_are_shown(self):
        self.log_in()
        png = ("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==")
        self.run_code("import base64\nfrom mcp.runtime import save_file, save_image\n"
                      f"save_image(base64.b64decode('{png}'), 'dot.png')\nsave_file('page.html', b'<h1>Hi</h1>')")
        self.open_newest()
        self.wait_for("#run-body .files img")
        self.assertEqual(browser.run("return await page.$eval('#run-body .files img', (image) => image.decode()"
                                     ".then(() => image.naturalWidth))"), 1)
        saved = browser.run("const [download] = await Promise.all([page.waitForEvent('download'),"
                            "page.click('#run-body .files li:has-text(\"page.html\") button')]);"
                            "const fs = await import('node:fs/promises');"
                            "const content = await fs.readFile(await download.path());"
                            "return [download.suggestedFilename(), content.toString()]")
        self.assertEqual(saved, ["page.html", "<h1>Hi</h1>"])

    def test_a_run_is_cancelled_and_its_client_learns_of_it(self):
        self.log_in()
        result = self.in_background(SLOW)
        run = self.wait_for_running()
        self.wait_for(f"#running tr[data-key='{run}'] td:nth-child(2):text-is('running')")
        self.click(f"#running tr[data-key='{run}'] button:text-is('Cancel')")
        self.assertEqual(result()["status"], "cancelled")
        self.wait_for(f"#ended tr[data-key='{run}'] .outcome.cancelled")
        self.wait_for("#running-empty:visible")

    def test_servers_sessions_and_the_ledger_are_shown(self):
        self.log_in()
        self.run_code("print(await mcp_recorder.echo(message='hello'))", servers=["recorder"])
        session = self.run_code("marker_of_this_test = 1", session="new")["session"]
        self.wait_for("#servers tbody tr:has-text('recorder') .outcome.success")
        self.wait_for("#sessions tbody tr")
        self.assertNotIn(session, browser.run("return await page.content()"))
        self.click("#tab-ledger")
        self.wait_for("#records tbody tr")
        everything = browser.run("return await page.locator('#records tbody tr').count()")
        browser.run("await page.fill('#search [name=text]', 'marker_of_THIS')")
        self.click("#search button[type=submit]")
        self.wait_for("#records-state:text-is('1 record.')")
        self.assertGreater(everything, 1)
        browser.run("await page.fill('#search [name=text]', ''); await page.fill('#search [name=server]', 'reco*');"
                    "await page.selectOption('#search [name=kind]', 'calls')")
        self.click("#search button[type=submit]")
        self.wait_for("#records tbody tr:has-text('recorder/echo')")
        browser.run("await page.selectOption('#search [name=outcome]', 'denied')")
        self.click("#search button[type=submit]")
        self.wait_for("#records-state:text-is('Nothing fits.')")
        browser.screenshot("web-page-ledger")

    def test_code_is_tried_under_the_rights_of_the_token(self):
        self.log_in()
        self.click("#tab-try")
        self.wait_for("#try-servers input[value=recorder]")
        browser.run("await page.check('#try-servers input[value=recorder]'); await page.fill('#code', given.code);"
                    "await page.focus('#code'); await page.keyboard.press('Control+Enter')",
                    code="print(await mcp_recorder.echo(message='from the page'))\n6 * 7")
        self.wait_for("#try-state:text-is('Ended: success')")
        self.assertEqual(self.text("#try-result pre[aria-label=stdout]"), "from the page\n")
        self.assertEqual(self.text("#try-result pre[aria-label=result]"), "42")
        browser.screenshot("web-page-try")
        self.assertEqual(self.state()["runs"]["ended"][0]["client"], "Bulkhead's page")
        # A run that is stopped there ends, as it does for any client that goes away.
        browser.run("await page.fill('#code', given.code); await page.click('#try-run')", code=SLOW)
        self.wait_for("#try-result pre:has-text('started')")
        self.click("#try-stop")
        wait_until(lambda: not self.running(), 30, "the run has ended")

    def test_a_session_goes_on_from_the_page(self):
        self.log_in()
        self.click("#tab-try")
        browser.run("await page.fill('#code', 'x = 20'); await page.selectOption('#try-session', 'new');"
                    "await page.click('#try-run')")
        self.wait_for("#try-state:text-is('Ended: success')")
        browser.run("await page.fill('#code', 'print(x + 1)'); await page.click('#try-run')")
        self.wait_for("#try-result pre:has-text('21')")


class WithoutAMouse(PageTest):
    def test_all_parts_are_reached_by_keys_and_have_names(self):
        self.log_in()
        browser.run("await page.focus('#tab-now'); await page.keyboard.press('ArrowRight')")
        self.assertEqual(browser.run("return await page.evaluate(() => document.activeElement.id)"), "tab-ledger")
        self.assertTrue(browser.run("return await page.isVisible('#ledger')"))
        browser.run("await page.keyboard.press('End')")
        self.assertTrue(browser.run("return await page.isVisible('#try')"))
        self.assertEqual(browser.run("return await page.getAttribute('#tab-try', 'aria-selected')"), "true")
        nameless = browser.run(
            "return await page.evaluate(() => [...document.querySelectorAll('button, input, select, textarea, svg')]"
            ".filter((each) => !each.closest('[aria-hidden=true]') && each.getAttribute('aria-hidden') !== 'true')"
            ".filter((each) => !(each.ariaLabel || each.getAttribute('aria-label') || each.textContent.trim() ||"
            " each.labels?.length)).map((each) => each.outerHTML))")
        self.assertEqual(nameless, [])

    def test_the_dialogue_takes_the_focus_and_gives_it_back(self):
        self.log_in()
        self.run_code("print(1)")
        self.wait_for("#ended tbody tr")
        browser.run("await page.focus('#ended tbody tr:first-child button'); await page.keyboard.press('Enter')")
        self.wait_for("#run[open]")
        inside = "return await page.evaluate((place) => document.activeElement.closest(place) !== null, given.place)"
        self.assertTrue(browser.run(inside, place="dialog"))
        browser.run("await page.keyboard.press('Escape')")
        self.assertTrue(browser.run(inside, place="#ended"))

    def test_contrast_suffices_in_both_themes(self):
        for theme in ("light", "dark"):
            with self.subTest(theme=theme):
                self.log_in(colorScheme=theme)
                self.run_code("print(1)")
                self.wait_for("#ended tbody tr")
                poor = browser.run(CONTRAST)
                self.assertEqual(poor, [])

    def test_the_theme_can_be_chosen_and_is_remembered(self):
        self.log_in(colorScheme="light")
        ground = "return await page.evaluate(() => getComputedStyle(document.body).backgroundColor)"
        light = browser.run(ground)
        browser.run("await page.selectOption('#theme', 'dark')")
        self.assertNotEqual(browser.run(ground), light)
        browser.run("await page.reload()")
        self.assertNotEqual(browser.run(ground), light)

    def test_a_phone_is_wide_enough(self):
        browser.open(viewport={"width": 360, "height": 740})
        browser.run("await page.goto(given.url); await page.fill('#token', given.token);"
                    "await page.click('#log-in button[type=submit]'); await page.waitForSelector('#panels:visible')",
                    url=self.page, token=self.server.tokens["ann"])
        self.run_code("print(1)")
        self.wait_for("#ended tbody tr")
        for part in ("now", "ledger", "try"):
            self.click(f"#tab-{part}")
            self.assertLessEqual(browser.run("return await page.evaluate(() => document.documentElement.scrollWidth)"),
                                 360, part)
        browser.screenshot("web-page-phone")


class Attacks(PageTest):
    def test_nothing_of_another_tenant_is_seen_or_done(self):
        self.in_background(SLOW)
        theirs = self.wait_for_running("ann")
        secret = self.run_code("from mcp.runtime import save_file\nsave_file('secret.txt', b'secret')\n"
                               "print('secret', 'x' * 40_000)")
        handle = secret["artifacts"][0]["uri"].split("/")[3]
        ended = self.state("ann")["runs"]["ended"][0]["run"]
        unknown = "f" * 32
        for path, other in ((f"runs/{theirs}", f"runs/{unknown}"), (f"runs/{ended}", f"runs/{unknown}"),
                            (f"artifacts/{handle}/secret.txt", f"artifacts/{unknown}/secret.txt"),
                            (f"outputs/{handle}/stdout", f"outputs/{unknown}/stdout")):
            with self.subTest(path=path):
                foreign, nothing = self.api(f"api/{path}", "bob"), self.api(f"api/{other}", "bob")
                self.assertEqual((foreign[0], foreign[2]), (404, nothing[2]))
                self.assertEqual(self.api(f"api/{path}", "ann")[0], 200)
        json_type = {"Content-Type": "application/json"}
        foreign = self.api(f"api/runs/{theirs}/cancel", "bob", "POST", json_type, "{}")
        nothing = self.api(f"api/runs/{unknown}/cancel", "bob", "POST", json_type, "{}")
        self.assertEqual((foreign[0], foreign[2]), (404, nothing[2]))
        self.assertIn(theirs, [run["run"] for run in self.running("ann")])
        for path in ("api/state", "api/ledger", "api/ledger?kind=calls", f"api/ledger?text={ended}"):
            content = self.api(path, "bob")[2].decode()
            for word in (theirs, ended, "secret", "recorder"):
                self.assertNotIn(word, content, path)
        status, _, content = self.api(f"api/runs/{theirs}/cancel", "ann", "POST", json_type, "{}")
        self.assertEqual(status, 202, content)
        wait_until(lambda: not self.running("ann"), 30, "the run has ended")

    def test_events_are_of_the_own_tenant_alone(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=patience(30))
        connection.request("GET", "/ui/api/events", headers={"Authorization": f"Bearer {self.server.tokens['bob']}"})
        answer = connection.getresponse()
        self.assertEqual(answer.headers["Content-Type"], "text/event-stream")
        self.run_code("print('of ann')")
        self.assertEqual(self.run_code("print('of bob')", self.bob)["status"], "success")
        ann, bob = (self.state(name)["runs"]["ended"][0]["run"] for name in ("ann", "bob"))
        seen = b""
        deadline = time.monotonic() + patience(30)
        while bob.encode() not in seen and time.monotonic() < deadline:
            seen += answer.read1(65536)
        connection.close()
        self.assertIn(bob.encode(), seen)
        self.assertNotIn(ann.encode(), seen)

    def test_without_a_token_and_from_other_sites_nothing_is_answered(self):
        for path in ("api/state", "api/events", "api/ledger", "api/nothing"):
            status, headers, _ = self.api(path, tenant=None)
            self.assertEqual((status, headers["WWW-Authenticate"][:6]), (401, "Bearer"), path)
        token = self.server.tokens["ann"]
        self.assertEqual(self.api(f"api/state?token={token}", tenant=None)[0], 401)
        self.assertEqual(self.api("api/state", tenant=None, headers={"Cookie": f"token={token}"})[0], 401)
        for headers in ({"Origin": "http://evil.example.com"}, {"Host": "evil.example.com"},
                        {"Sec-Fetch-Site": "cross-site"}):
            self.assertEqual(self.api("api/state", headers=headers)[0], 403, headers)
        self.assertEqual(self.api("", tenant=None, headers={"Host": "evil.example.com"})[0], 403)
        run = "a" * 32
        for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data"):
            self.assertEqual(self.api(f"api/runs/{run}/cancel", method="POST", headers={"Content-Type": kind},
                                      body="{}")[0], 415, kind)

    def test_a_page_may_be_framed_and_read_by_nobody(self):
        for path in ("", "page.js", "api/state"):
            status, headers, _ = self.api(path)
            self.assertEqual(status, 200, path)
            self.assertIn("frame-ancestors 'none'", headers["Content-Security-Policy"])
            self.assertEqual(headers["X-Content-Type-Options"], "nosniff")
            self.assertEqual(headers["Cross-Origin-Resource-Policy"], "same-origin")
            self.assertIsNone(headers["Access-Control-Allow-Origin"])
            self.assertIsNone(headers["Set-Cookie"])

    def test_artifacts_are_never_pages_of_this_server(self):
        made = self.run_code(f"from mcp.runtime import save_file\nsave_file('x.html', {EVIL!r}.encode())")
        path = made["artifacts"][0]["uri"].replace("bulkhead://artifacts/", "api/artifacts/")
        status, headers, content = self.api(path)
        self.assertEqual((status, content.decode()), (200, EVIL))
        self.assertTrue(headers["Content-Disposition"].startswith("attachment"))
        self.assertEqual(headers["Content-Type"], "application/octet-stream")
        self.assertIn("sandbox", headers["Content-Security-Policy"])


class SwitchedOff(unittest.TestCase):
    def test_there_is_no_page_where_it_is_not_wanted(self):
        world = World({})
        server = TenantServer(world, {"ann": ""}, "[ui]\nenabled = false\n")
        try:
            for path in ("/ui/", "/ui/api/state"):
                connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=patience(30))
                connection.request("GET", path, headers={"Authorization": f"Bearer {server.tokens['ann']}"})
                self.assertEqual(connection.getresponse().status, 404, path)
                connection.close()
            self.assertEqual(server.stop(), 0)
        finally:
            server.stop()
            world.close()


# Text that stands out too little from what is behind it (WCAG 2.2, 1.4.3: 4.5 to 1).
CONTRAST = """
return await page.evaluate(() => {
  const channel = (value) => value <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  const light = ([r, g, b]) => 0.2126 * channel(r / 255) + 0.7152 * channel(g / 255) + 0.0722 * channel(b / 255);
  const parts = (color) => color.match(/[\\d.]+/g).map(Number);
  const behind = (element) => {
    for (let each = element; each; each = each.parentElement) {
      const found = parts(getComputedStyle(each).backgroundColor);
      if (found.length < 4 || found[3] > 0) {
        return found;
      }
    }
    return [255, 255, 255];
  };
  const shown = [...document.querySelectorAll("body *")].filter((each) => each.checkVisibility() && !each.disabled &&
    !each.closest(".unseen, .skip") && [...each.childNodes].some((node) => node.nodeType === 3 && node.data.trim()));
  return shown.map((each) => {
    const style = getComputedStyle(each);
    const text = light(parts(each instanceof SVGElement ? style.fill : style.color));
    const ground = light(behind(each));
    const ratio = (Math.max(text, ground) + 0.05) / (Math.min(text, ground) + 0.05);
    return [ratio, each.outerHTML.slice(0, 80)];
  }).filter(([ratio]) => ratio < 4.5);
})
"""
