"""Memories: keys and file names, values, limits, writers at the same time, and a folder in which
anything may lie."""
import json
import os
import random
import subprocess
import sys
import time
import unicodedata
import unittest

from fake_host import GUEST, Run
from projects import ProjectsTest

sys.path.insert(0, str(GUEST))
import bulkhead_names  # noqa: E402


class Names(unittest.TestCase):
    KEYS = ["a", "A", "aB", "ab", "a/b", "a%2fb", "a_b", "a.b", "a b", ".", "..", "...", ".a", "%", "%25",
            "%-", "é", "e\u0301", "É", "ß", "ẞ", "日本", "\n", "\0", "a\0", "-", "con", "x" * 120, "x" * 121,
            "X" * 1024, "x" * 1024, "x" * 1023 + "y", "é" * 1024, "../../etc/passwd", "\u2028", "ﬁ", "fi",
            "İ", "i̇", "a.json", "a.json.json", " a", "a ", "\ud7ff", "\U0010ffff"]

    def test_names_are_injective_even_without_case_and_normalised(self):
        names = [bulkhead_names.file_name(key) for key in self.KEYS]
        folded = {unicodedata.normalize("NFKC", name).casefold() for name in names}
        self.assertEqual(len(folded), len(self.KEYS))
        for name in names:
            self.assertRegex(name, r"\A[a-z0-9%_-][a-z0-9%._-]*\.json\Z")
            self.assertLessEqual(len(name), 143)

    def test_names_tell_their_keys(self):
        random.seed(5)
        some = ["".join(random.choice("aA._-%/ é日\0\n") for _ in range(random.randint(1, 9)))
                for _ in range(2000)]
        for key in self.KEYS + some:
            name = bulkhead_names.file_name(key)
            self.assertEqual(bulkhead_names.key_of(name), None if "%-" in name else key)

    def test_names_by_hand(self):
        for name, key in (("Config.json", "Config"), ("my notes.json", "my notes"), ("é.json", "é"),
                          ("A.B.json", "A.B"), ("%41.json", "A"), ("%4.json", None),
                          ("%zz.json", None), ("%61.json", None), ("%C3%A9.json", None),
                          (".json", None), ("a%2Fb.json", None), ("x" * 200 + ".json", None)):
            self.assertEqual(bulkhead_names.key_of(name), key, name)

    def test_keys_that_are_none(self):
        for key in (None, 3, b"a", ["a"]):
            self.assertRaises(TypeError, bulkhead_names.file_name, key)
        for key in ("", "x" * 1025, "\ud800"):
            self.assertRaises(ValueError, bulkhead_names.file_name, key)


class Values(ProjectsTest):
    def test_a_memory_is_there_in_later_runs(self):
        self.assertEqual(self.output_of("print(save_memory('plan', {'steps': [1, 2.5, None, True]}, "
                                        "{'tags': ['x']}))"), "Memory 'plan' saved.\n")
        self.assertEqual(self.output_of("print(load_memory('plan'), memory_exists('plan'), "
                                        "memory_exists('other'))"),
                         "{'steps': [1, 2.5, None, True]} True False\n")
        self.assertEqual(self.output_of("print(load_memory('other'), load_memory('other', 5), "
                                        "load_memory('other', default=[]))"), "None 5 []\n")
        self.assertEqual(self.output_of("print(delete_memory('plan'), delete_memory('plan'), "
                                        "load_memory('plan'), list_memories())"),
                         "True False None []\n")

    def test_before_there_is_a_folder(self):
        self.assertEqual(self.output_of("print(load_memory('a'), list_memories(), get_memory_info('a'),"
                                        " delete_memory('a'), memory_exists('a'))"),
                         "None [] None False False\n")
        self.assertEqual(os.listdir(self.projects), [])

    def test_the_same_functions_in_runtime_and_in_a_loop(self):
        self.output_of("import asyncio\nfrom mcp import runtime\nawait asyncio.sleep(0)\n"
                       "runtime.save_memory('a', 1)\n"
                       "assert runtime.update_memory('a', lambda n: n + 1) == 2\n"
                       "for name in ('save_memory', 'load_memory', 'list_memories', 'update_memory', "
                       "'delete_memory', 'memory_exists', 'get_memory_info'):\n"
                       "    assert getattr(runtime, name).__doc__ and name in runtime.__all__\n"
                       "    assert eval(name) is getattr(runtime, name)")

    def test_values_come_back_as_json_has_them(self):
        for value in ("None", "True", "0", "-1.5", "10**40", "''", "'é\\u2028\\0\\ud800x'", "[]", "{}",
                      "{'a': {'b': [[], {}]}}", "'x' * 100_000"):
            with self.subTest(value):
                self.assertEqual(self.output_of("save_memory('k', %s)\nprint(load_memory('k') == %s)"
                                                % (value, value)), "True\n")
        self.assertEqual(self.output_of("save_memory('k', {1: (2, 3)})\nprint(load_memory('k'))"),
                         "{'1': [2, 3]}\n")

    def test_the_file(self):
        before = time.time()
        self.output_of("save_memory('Ä b', ['é'], metadata={'n': 1})")
        document = json.loads(self.read("memory/%c3%84%20b.json"))
        self.assertEqual({**document, "created_at": 0, "updated_at": 0},
                         {"key": "Ä b", "value": ["é"], "metadata": {"n": 1},
                          "created_at": 0, "updated_at": 0})
        self.assertEqual(document["created_at"], document["updated_at"])
        self.assertTrue(before <= document["created_at"] <= time.time())

    def test_what_is_told_of_memories(self):
        self.output_of("save_memory('b', 1, {'tag': 'x'})\nsave_memory('a/1', 'one')\n"
                       "save_memory('a/2', 2)\nimport time\ntime.sleep(0.01)\nsave_memory('b', 22)")
        info = self.run_later("get_memory_info('b')").value
        self.assertEqual((info["key"], info["value"], info["metadata"]), ("b", 22, {"tag": "x"}))
        self.assertEqual(info["size"], os.path.getsize(self.path("memory", "b.json")))
        self.assertLess(info["created_at"], info["updated_at"])
        listed = self.run_later("list_memories()").value
        self.assertEqual([each["key"] for each in listed], ["a/1", "a/2", "b"])
        del info["value"]
        self.assertEqual(listed[2], info)
        self.assertEqual([each["key"] for each in self.run_later("list_memories('a/')").value],
                         ["a/1", "a/2"])
        self.assertEqual(self.run_later("list_memories(prefix='c')").value, [])
        self.output_of("save_memory('b', 3, {})")
        self.assertEqual(self.run_later("get_memory_info('b')['metadata']").value, {})

    def test_update(self):
        self.assertEqual(self.output_of(
            "print(update_memory('n', lambda n: (n or 0) + 1), update_memory('n', lambda n: n + 1),"
            " update_memory('l', lambda l: l + [1], default=[]), update_memory('v', 'value'),"
            " update_memory('v', None), load_memory('n'), load_memory('l'), load_memory('v', 1))"),
            "1 2 [1] value None 2 [1] None\n")
        kind, message = self.error_of("update_memory('l', lambda l: l.append(2))")
        self.assertEqual(kind, "invalid_argument")
        self.assertIn("returned None", message)
        run = self.run_later("update_memory('n', lambda n: 1 / 0)")
        self.assertEqual(run.done["error"]["type"], "ZeroDivisionError")
        self.assertEqual(self.output_of("print(load_memory('n'), load_memory('l'))"), "2 [1]\n")

    def test_memories_used_inside_an_update(self):
        self.assertEqual(self.output_of(
            "def both(n):\n    save_memory('other', n)\n"
            "    return update_memory('third', lambda m: load_memory('other')) + 1\n"
            "print(update_memory('n', both, default=4), load_memory('other'), load_memory('n'))"),
            "5 4 5\n")

    def test_what_cannot_be_saved(self):
        for code, words in (
                ("save_memory('', 1)", "is empty"), ("save_memory(3, 1)", "is a str, not int"),
                ("load_memory('x' * 1025)", "1025 characters, and 1024"),
                ("memory_exists('')", "is empty"), ("delete_memory(None)", "not NoneType"),
                ("update_memory('\\ud800', 1)", "isn't valid Unicode"),
                ("list_memories(3)", "is a str, not int"),
                ("save_memory('k', {1, 2})", "value is of type set"),
                ("save_memory('k', [1, {'a': ({}, object())}])", "value[1]['a'][1] is of type object"),
                ("save_memory('k', {'x': {(1, 2): 3}})", "value['x'] has the key (1, 2) of type tuple"),
                ("save_memory('k', [float('nan')])", "value[0] is nan"),
                ("save_memory('k', float('-inf'))", "value is -inf"),
                ("save_memory('k', b'x')", "value is of type bytes"),
                ("l = []; l.append({'l': l})\nsave_memory('k', l)", "contains itself"),
                ("l = []\nfor _ in range(100_000): l = [l]\nsave_memory('k', l)", "too deeply"),
                ("save_memory('k', 1, ['x'])", "metadata of a memory is a dict"),
                ("save_memory('k', 1, {'x': {1}})", "metadata['x'] is of type set")):
            with self.subTest(code):
                kind, message = self.error_of(code)
                self.assertEqual(kind, "invalid_argument")
                self.assertIn(words, message)
        self.assertEqual(self.run_later("list_memories()").value, [])


class Limits(ProjectsTest):
    def test_one_value(self):
        self.output_of("save_memory('k', 'x' * (8 * 1024 * 1024 - 2))")
        kind, message = self.error_of("save_memory('k', 'x' * (8 * 1024 * 1024 - 1))")
        self.assertEqual(kind, "quota")
        self.assertIn("takes 8388609 bytes as JSON, and 8388608 are allowed", message)
        self.assertEqual(self.run_later("len(load_memory('k'))").value, 8 * 1024 * 1024 - 2)
        self.assertEqual(self.error_of("save_memory('k', 1, {'x': 'y' * 65536})")[0], "quota")

    def test_all_values(self):
        self.output_of("for i in range(8): save_memory('k%d' % i, 'x' * (8 * 1000 * 1000))")
        for code in ("save_memory('more', 'x' * 4_000_000)", "update_memory('k0', 'x' * 8_388_000)",
                     "for i in range(9): save_memory('more%d' % i, 'x' * 1_000_000)"):
            if code.startswith("update"):
                self.output_of("save_memory('filler', 'x' * 3_000_000)")
            run = self.run_later("from mcp.runtime import MCPError, MemoryQuotaError\ntry:\n    " + code
                                 + "\nexcept MemoryQuotaError as e:\n"
                                 "    print(e.code, isinstance(e, MCPError), e)")
            self.assertIn("quota True save the memory", run.stdout)
            self.assertIn("67108864 are allowed", run.stdout)
        self.output_of("save_memory('k0', 1)\nsave_memory('more', 'x' * 4_000_000)")

    def test_the_number_of_memories(self):
        for number in range(10_000):
            self.write("memory/%d.json" % number, "1")
        kind, message = self.error_of("save_memory('new', 1)")
        self.assertEqual(kind, "quota")
        self.assertIn("there are 10000, and 10000 are allowed", message)
        self.output_of("save_memory('77', 2)\nassert len(list_memories()) == 10_000\n"
                       "delete_memory('78')\nsave_memory('new', 1)")

    def test_a_full_disk_corrupts_nothing(self):
        self.output_of("save_memory('k', 'old')")
        before = sorted(os.listdir(self.path("memory")))
        for code in ("save_memory('k', 'x' * 50_000)", "save_memory('new', 'x' * 50_000)",
                     "update_memory('k', lambda old: old * 50_000)"):
            kind, message = self.error_of(
                "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))\n" + code)
            self.assertEqual(kind, "unavailable")
            self.assertIn("write %s" % self.path("memory"), message)
            self.assertEqual(self.output_of("print(load_memory('k'), load_memory('new'))"), "old None\n")
            self.assertEqual(sorted(os.listdir(self.path("memory"))), before)


class AtTheSameTime(ProjectsTest):
    def test_no_update_is_lost(self):
        hosts = [self.guest() for _ in range(3)]
        code = "for _ in range(60): update_memory('n', lambda n: n + 1, default=0)"
        ids = [host.start(code) for host in hosts]
        for host, run_id in zip(hosts, ids):
            self.assert_ok(host.follow(Run(), run_id))
        self.assertEqual(self.run_later("load_memory('n')").value, 180)
        self.assertEqual(sorted(os.listdir(self.path("memory"))), [".lock", "n.json"])

    def test_threads_of_one_run(self):
        self.assertEqual(self.run_later("""
            from concurrent.futures import ThreadPoolExecutor
            def add(_):
                update_memory('n', lambda n: n + 1, default=0)
                save_memory('own', 1)
            with ThreadPoolExecutor(8) as pool:
                list(pool.map(add, range(60)))
            load_memory('n')
            """).value, 60)

    def test_readers_see_whole_values_only(self):
        writer, reader = self.guest(), self.guest()
        self.output_of("save_memory('k', 'a' * 300_000)")
        run_id = writer.start("for i in range(40): save_memory('k', 'ab'[i % 2] * 300_000)")
        run = reader.run("seen = set()\nfor _ in range(200):\n    v = load_memory('k')\n"
                         "    seen.add((len(v), len(set(v))))\nsorted(seen)")
        self.assert_ok(writer.follow(Run(), run_id))
        self.assertEqual(run.value, [[300_000, 1]])

    def test_a_killed_writer_leaves_no_lock_and_no_half_file(self):
        self.output_of("save_memory('k', 0)")
        for _ in range(8):
            host = self.guest()
            host.start("n = 0\nwhile True:\n    n += 1\n    save_memory('k', [n] * 20_000)")
            time.sleep(0.1 + random.random() / 10)
            host.process.kill()
            host.process.wait()
            run = self.run_later("v = load_memory('k')\nassert v == 0 or len(v) == 20_000, v\n"
                                 "save_memory('k', 0)")
            self.assert_ok(run)
        leftovers = [name for name in os.listdir(self.path("memory")) if name.startswith(".new-")]
        for name in leftovers:
            os.utime(self.path("memory", name), (0, 0))
        self.write("memory/.new-0000", "x")
        self.output_of("save_memory('k', 1)")
        self.assertEqual(sorted(os.listdir(self.path("memory"))), [".lock", ".new-0000", "k.json"])

    def test_a_lock_that_is_held_for_ever_is_given_up(self):
        self.output_of("save_memory('k', 1)")
        holder = subprocess.Popen(
            [sys.executable, "-c", "import fcntl, sys, time\n"
             "f = open(sys.argv[1], 'w')\nfcntl.flock(f, fcntl.LOCK_EX)\nprint(flush=True)\n"
             "time.sleep(100)", self.path("memory", ".lock")], stdout=subprocess.PIPE)
        self.addCleanup(holder.stdout.close)
        self.addCleanup(holder.wait)
        self.addCleanup(holder.kill)
        holder.stdout.readline()
        short = "import bulkhead_runtime as r\nr._part('bulkhead_store').LOCK_SECONDS = 0.3\n"
        for code in ("save_memory('k', 2)", "update_memory('k', 2)", "delete_memory('k')"):
            self.assertEqual(self.error_of(short + code)[0], "timeout")
        self.assertEqual(self.run_later("load_memory('k')").value, 1)  # readers wait for nobody

    def test_a_lock_file_that_is_removed_meanwhile(self):
        host = self.guest()
        run_id = host.start("import time\ndef slow(n):\n    print('in', flush=True)\n"
                            "    time.sleep(1)\n    return n + 1\n"
                            "update_memory('n', slow, default=0)")
        run = host.follow(Run(), run_id, until=lambda run: "in" in run.stdout)
        os.unlink(self.path("memory", ".lock"))
        self.output_of("save_memory('m', 1)")
        self.assert_ok(host.follow(run, run_id))
        self.assertEqual(self.output_of("print(load_memory('n'), load_memory('m'))"), "1 1\n")

    def test_an_interrupted_update_frees_the_lock(self):
        host = self.guest()
        run_id = host.start("import time\nupdate_memory('n', lambda n: print('in') or time.sleep(50))")
        run = host.follow(Run(), run_id, until=lambda run: "in" in run.stdout)
        host.send({"type": "cancel", "id": run_id})
        self.assertEqual(host.follow(run, run_id).exit_code, 130)
        self.output_of("save_memory('n', 1)")
        self.assertEqual(host.run("update_memory('n', lambda n: n + 1)").value, 2)


class OtherFiles(ProjectsTest):
    def test_files_by_hand(self):
        self.write("memory/Config.json", '\ufeff\n {"debug" : [1, 2]}\r\n')
        self.write("memory/my notes.json", '"text"')
        self.write("memory/odd.json", '{"key": "x", "value": 1}')
        self.write("memory/notes.txt", "not a memory")
        run = self.run_later("[load_memory(key) for key in ('Config', 'my notes', 'odd')]")
        self.assertEqual(run.value, [{"debug": [1, 2]}, "text", {"key": "x", "value": 1}])
        listed = self.run_later("list_memories()")
        self.assert_ok(listed)
        self.assertEqual([each["key"] for each in listed.value], ["Config", "my notes", "odd"])
        self.assertAlmostEqual(listed.value[0]["updated_at"], time.time(), delta=60)
        self.output_of("update_memory('Config', lambda c: [c])\nsave_memory('my notes', 2)")
        self.assertEqual(sorted(os.listdir(self.path("memory"))),
                         ["%43onfig.json", ".lock", "my%20notes.json", "notes.txt", "odd.json"])
        self.assertEqual(self.run_later("load_memory('Config')").value, [{"debug": [1, 2]}])

    def test_files_of_the_older_bridge(self):
        for key in ("my.key", "Plain", "a_b"):
            name = key.replace(".", "_")
            self.write("memory/%s.json" % name, json.dumps(
                {"key": key, "value": {"of": key}, "metadata": {"tags": [1]}, "created_at": 5.0,
                 "updated_at": 6.0}, indent=2))
        self.assertEqual(self.run_later("load_memory('my.key')").value, {"of": "my.key"})
        self.assertEqual(self.run_later("list_memories()").value[2],
                         {"key": "my.key", "metadata": {"tags": [1]}, "created_at": 5.0,
                          "updated_at": 6.0, "size": os.path.getsize(self.path("memory/my_key.json"))})
        # Its file is not that of the key that it is called by.
        self.assertEqual(self.output_of("print(load_memory('my_key'), memory_exists('my_key'), "
                                        "delete_memory('my_key'))"), "None False False\n")
        self.output_of("save_memory('my_key', 1)\nsave_memory('Plain', 2)")
        self.assertEqual(self.output_of("print(load_memory('my.key'), load_memory('my_key'), "
                                        "get_memory_info('Plain')['created_at'])"),
                         "{'of': 'my.key'} 1 5.0\n")
        # One that is older than the key's own file is not put in its place.
        os.rename(self.path("memory/my.key.json"), self.path("memory/my_key.json"))
        self.write("memory/my.key.json", '"newer"')
        self.output_of("save_memory('my_key', 1)")
        self.assertEqual(self.run_later("[load_memory('my.key'), load_memory('my_key')]").value,
                         ["newer", 1])
        self.assertEqual(self.output_of("print(delete_memory('my.key'), memory_exists('my.key'), "
                                        "load_memory('my_key'))"), "True False 1\n")

    def test_names_of_long_keys_need_their_file(self):
        self.output_of("save_memory('long ' * 100, 'value')")
        listed = self.run_later("[each['key'] for each in list_memories('long ')]")
        self.assertEqual(listed.value, ["long " * 100])
        name, = [each for each in os.listdir(self.path("memory")) if each != ".lock"]
        self.write("memory/" + name, "[1]")
        self.assertEqual(self.run_later("load_memory('long ' * 100)").value, [1])
        self.assertIn("error", self.run_later("list_memories()").value[0])
        self.write("memory/" + name, "[")
        self.assertEqual(self.error_of("load_memory('long ' * 100)")[0], "unavailable")
        self.assertEqual(self.output_of("print(delete_memory('long ' * 100))"), "True\n")
        self.output_of("save_memory('long ' * 100, 'again')")
        self.assertEqual(self.run_later("load_memory('long ' * 100)").value, "again")

    def test_files_that_are_no_json(self):
        for content in (b"", b"{", b"\xff\xfe", b"1 2", b"[" * 200_000, b"nonsense"):
            self.write("memory/k.json", content)
            kind, message = self.error_of("load_memory('k')")
            self.assertEqual(kind, "unavailable")
            self.assertIn(self.path("memory/k.json"), message)
            self.assertEqual(self.error_of("update_memory('k', 1)")[0], "unavailable")
            self.assertEqual(self.read("memory/k.json"), content)
            run = self.run_later("[(each['key'], 'error' in each) for each in list_memories()]")
            self.assertEqual(run.value, [["k", True]])
            self.assertEqual(self.output_of("print(memory_exists('k'), save_memory('k', 1), "
                                            "load_memory('k'))"), "True Memory 'k' saved. 1\n")
        self.write("memory/k.json", b"{")
        self.assertEqual(self.output_of("print(delete_memory('k'), memory_exists('k'))"),
                         "True False\n")

    def test_hostile_files_harm_nothing(self):
        os.mkdir(self.path("memory"))
        secret = self.write("secret.json", '"outside"')
        os.symlink(secret, self.path("memory/link.json"))
        os.symlink("/dev/zero", self.path("memory/zero.json"))
        os.symlink("loop.json", self.path("memory/loop.json"))
        os.mkfifo(self.path("memory/fifo.json"))
        os.mkdir(self.path("memory/folder.json"))
        with open(self.path("memory/huge.json"), "wb") as file:
            file.truncate(10 ** 12)
        self.write("memory/good.json", "1")
        run = self.run_later("list_memories()")
        self.assertEqual([each["key"] for each in run.value], ["good", "huge"])
        self.assertIn("5 entries of %s are left out" % self.path("memory"), run.stderr)
        self.assertLess(run.seconds, 20)
        for key in ("link", "zero", "loop", "fifo", "folder", "huge"):
            with self.subTest(key):
                kind, message = self.error_of("load_memory(%r)" % key)
                self.assertEqual(kind, "unavailable")
                self.assertIn("remove it", message)
        self.assertEqual(self.error_of("delete_memory('folder')")[0], "unavailable")
        # The impossible size counts: what is saved has to go somewhere.
        self.assertEqual(self.error_of("save_memory('x', 1)")[0], "quota")
        self.output_of("for key in ('zero', 'loop', 'huge'): assert delete_memory(key)\n"
                       "for key in ('link', 'fifo'): save_memory(key, key)")
        self.assertEqual(self.error_of("save_memory('folder', 1)")[0], "unavailable")
        self.assertEqual(self.read("secret.json"), b'"outside"')
        self.assertEqual(self.run_later("[load_memory('link'), load_memory('fifo')]").value,
                         ["link", "fifo"])

    def test_a_folder_that_is_none(self):
        other = self.path("elsewhere")
        os.mkdir(other)
        for make in (lambda path: os.symlink(other, path), os.mkfifo,
                     lambda path: self.write("memory", "x")):
            make(self.path("memory"))
            for code in ("save_memory('k', 1)", "load_memory('k')", "list_memories()",
                         "delete_memory('k')", "memory_exists('k')"):
                kind, message = self.error_of(code)
                self.assertEqual(kind, "unavailable")
                self.assertIn(self.path("memory"), message)
            os.unlink(self.path("memory"))
        self.assertEqual(os.listdir(other), [])

    def test_hostile_lock_files_harm_nothing(self):
        os.mkdir(self.path("memory"))
        lock = self.path("memory/.lock")
        for make in (lambda: os.symlink("/etc/passwd", lock), lambda: os.mkfifo(lock),
                     lambda: os.mkdir(lock)):
            make()
            kind, message = self.error_of("save_memory('k', 1)")
            self.assertEqual(kind, "unavailable")
            self.assertIn(lock, message)
            self.assertEqual(self.output_of("print(load_memory('k'), list_memories())"), "None []\n")
            (os.rmdir if os.path.isdir(lock) else os.unlink)(lock)

    def test_more_names_than_anybody_reads(self):
        os.mkdir(self.path("memory"))
        self.write("memory/a.json", "1")
        for number in range(1_100):
            os.symlink("x", self.path("memory/n%d.json" % number))
        run = self.run_later("import sys\nmemory_exists('a')\n"
                             "sys.modules['bulkhead_memory'].NAMES_SEEN = 1_000\nlen(list_memories())")
        self.assertIn("more than ", run.stderr)
        self.assertLessEqual(run.value, 1)
        self.assertEqual(self.run_later("load_memory('a')").value, 1)

    def test_data_that_grows_when_decoded_is_not_decoded_for_a_list(self):
        self.write("memory/bomb.json", b"[" + b"{}," * 2_700_000 + b"{}]")
        run = self.run_later("import resource\nbefore = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss"
                             "\nkeys = [each['key'] for each in list_memories()]\n"
                             "[keys, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before]")
        self.assertEqual(run.value[0], ["bomb"])
        self.assertLess(run.value[1], 60 * 1024)


if __name__ == "__main__":
    unittest.main()
