"""What a sandbox can't do, tried from inside through run_python itself; and that doctor says the same."""

import json
import os

from host import account, as_account, patience, read, sub_uid_range, wait_until
from instances import guests_of
from stdio_client import status_field
from world import PYTHON, BulkheadTest, inside


class Constraints(BulkheadTest):
    def report(self, code, timeout=60):
        """What `code` prints last, as JSON."""
        return json.loads(self.run_well(code, timeout=timeout)["stdout"].splitlines()[-1])

    # -- network -----------------------------------------------------------------------------------

    def test_no_network(self):
        found = self.report("""
            import errno, json, os, socket
            found = {"interfaces": os.listdir("/sys/class/net"),
                     "routes": open("/proc/net/route").read().splitlines()[1:]}
            for name, family, address in (("public", socket.AF_INET, ("1.1.1.1", 53)),
                                          ("private", socket.AF_INET, ("10.0.2.2", 22)),
                                          ("metadata", socket.AF_INET, ("169.254.169.254", 80)),
                                          ("public6", socket.AF_INET6, ("2606:4700:4700::1111", 53))):
                for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
                    with socket.socket(family, kind) as s:
                        s.settimeout(5)
                        try:
                            s.connect(address)
                            s.send(b"x")
                            found[name] = "connected"
                        except OSError as e:
                            found[name] = errno.errorcode[e.errno]
            try:
                socket.getaddrinfo("example.com", 80)
                found["name"] = "resolved"
            except OSError:
                found["name"] = "failed"
            found["itself"] = socket.gethostbyname("localhost")
            print(json.dumps(found))
            """)
        self.assertEqual(found.pop("interfaces"), ["lo"])
        self.assertEqual(found.pop("routes"), [])
        self.assertEqual(found.pop("name"), "failed")
        self.assertEqual(found.pop("itself"), "127.0.0.1")
        self.assertEqual(set(found.values()), {"ENETUNREACH"}, found)

    def test_no_way_to_the_hosts_sockets(self):
        found = self.report("""
            import errno, json, socket
            found = {}
            for name, family, kind, address in (("vsock", 40, socket.SOCK_STREAM, None),
                                                ("packet", 17, socket.SOCK_RAW, None),
                                                ("netlink", 16, socket.SOCK_RAW, None),
                                                ("bluetooth", 31, socket.SOCK_RAW, None)):
                try:
                    socket.socket(family, kind).close()
                    found[name] = "made"
                except OSError as e:
                    found[name] = errno.errorcode[e.errno]
            # Abstract UNIX sockets belong to the network namespace: nobody listens in this one.
            found["abstract"] = len(open("/proc/net/unix").read().splitlines()) - 1
            print(json.dumps(found))
            """)
        self.assertEqual(found.pop("abstract"), 0)
        self.assertLessEqual(set(found.values()), {"EPERM", "EAFNOSUPPORT", "ENOSYS"}, found)

    # -- files -------------------------------------------------------------------------------------

    def test_only_four_places_are_writable(self):
        """By trying in every folder of every mount, not by reading options."""
        found = self.report("""
            import json, os
            mounts = [line.split()[4] for line in open("/proc/self/mountinfo")]
            writable, seen = set(), set()
            for top in mounts:
                for folder, folders, files in os.walk(top):
                    if os.path.realpath(folder).startswith("/proc/") and folder.count("/") > 3:
                        folders.clear()
                    if folder in seen or len(seen) > 50_000:
                        folders.clear()
                        continue
                    seen.add(folder)
                    try:
                        path = folder + "/.attempt"
                        os.close(os.open(path, os.O_CREAT | os.O_WRONLY))
                        os.unlink(path)
                        writable.add(folder)
                    except OSError:
                        pass
            print(json.dumps({"seen": len(seen), "mounts": len(mounts), "writable": sorted(writable)}))
            """)
        self.assertGreater(found["seen"], 300)
        # /dev/mqueue holds message queues, which the seccomp profile refuses to make, and has no room for data.
        self.assertEqual(set(found["writable"]) - {"/dev/mqueue"},
                         {"/tmp", "/workspace", "/dev/shm", "/projects"})

    def test_the_root_is_read_only(self):
        found = self.report("""
            import errno, json, os
            found = {}
            for path in ("/x", "/etc/passwd", "/usr/bin/x", "/var/tmp/x", "/run/x", "/home/x", "/root/x",
                         "/ipc/x", "/ipc/entrypoint.py", "/ipc/bulkhead_channel.py", "/proc/sys/kernel/hostname",
                         "/sys/kernel/x", "/sys/fs/cgroup/cgroup.procs"):
                try:
                    os.close(os.open(path, os.O_CREAT | os.O_RDWR))
                    found[path] = "opened"
                except OSError as e:
                    found[path] = errno.errorcode[e.errno]
            print(json.dumps(found))
            """)
        self.assertNotIn("opened", found.values(), found)
        self.assertEqual((found["/x"], found["/ipc/x"]), ("EROFS", "EROFS"))

    def test_ipc_holds_the_guest_alone(self):
        found = self.report("""
            import json, os, stat
            entries = {}
            for name in os.listdir("/ipc"):
                entries[name] = stat.S_IFMT(os.lstat("/ipc/" + name).st_mode) == stat.S_IFREG
            line = [l.split() for l in open("/proc/self/mountinfo") if l.split()[4] == "/ipc"][-1]
            print(json.dumps({"entries": entries, "options": line[5].split(",")}))
            """)
        self.assertIn("entrypoint.py", found["entries"])
        self.assertTrue(all(found["entries"].values()), "no sockets or pipes may lie there")
        self.assertLessEqual({"ro", "nosuid", "nodev", "noexec"}, set(found["options"]))

    def test_scratch_folders_have_sizes_and_run_no_programs(self):
        found = self.report("""
            import errno, json, os, shutil, subprocess
            found = {}
            for folder, size in (("/tmp", 64), ("/workspace", 128), ("/dev/shm", 64)):
                program = folder + "/program"
                shutil.copy("/bin/true", program)
                os.chmod(program, 0o755)
                try:
                    subprocess.run([program])
                    found[folder + " program"] = "ran"
                except OSError as e:
                    found[folder + " program"] = errno.errorcode[e.errno]
                os.unlink(program)
                written = 0
                try:
                    with open(folder + "/big", "wb", buffering=0) as file:
                        for _ in range(300):
                            written += file.write(b"x" * (1 << 20))
                except OSError as e:
                    found[folder + " end"] = errno.errorcode[e.errno]
                found[folder] = written >> 20
                os.unlink(folder + "/big")
            print(json.dumps(found))
            """)
        self.assertEqual(found["/tmp"], 64, found)
        self.assertEqual(found["/tmp end"], "ENOSPC")
        self.assertEqual(found["/dev/shm"], 64)
        self.assertEqual(found["/dev/shm end"], "ENOSPC")
        # The limit on one file is as large as this folder, so either may end it.
        self.assertGreaterEqual(found["/workspace"], 127)
        self.assertLessEqual(found["/workspace"], 128)
        self.assertIn(found["/workspace end"], ("ENOSPC", "EFBIG"))
        self.assertEqual({found[f + " program"] for f in ("/tmp", "/workspace", "/dev/shm")}, {"EACCES"})

    def test_no_devices_and_no_setuid(self):
        found = self.report("""
            import errno, json, os, stat
            found = {"devices": [], "setuid": []}
            for top in ("/", ):
                for folder, folders, files in os.walk(top):
                    folders[:] = [f for f in folders if os.path.join(folder, f) not in ("/proc", "/sys")]
                    for name in files:
                        path = os.path.join(folder, name)
                        mode = os.lstat(path).st_mode
                        if stat.S_ISBLK(mode): found["devices"].append(path)
                        if mode & (stat.S_ISUID | stat.S_ISGID) and stat.S_ISREG(mode): found["setuid"].append(path)
            for kind in (stat.S_IFBLK, stat.S_IFCHR):
                try:
                    os.mknod("/workspace/device", kind | 0o666, os.makedev(1, 3))
                    found["devices"].append("made one")
                except OSError as e:
                    found["mknod"] = errno.errorcode[e.errno]
            print(json.dumps(found))
            """)
        self.assertEqual((found["devices"], found["setuid"], found["mknod"]), ([], [], "EPERM"))

    # -- identity ----------------------------------------------------------------------------------

    def test_identity_and_privileges(self):
        found = self.report("""
            import json, os
            status = dict(line.split(":", 1) for line in open("/proc/self/status").read().splitlines())
            print(json.dumps({"uids": os.getresuid(), "gids": os.getresgid(), "host": os.uname().nodename,
                              "cwd": os.getcwd(), **{k: v.strip() for k, v in status.items()}}))
            """)
        self.assertEqual(found["uids"], [65534] * 3)
        self.assertEqual(found["gids"], [65534] * 3)
        for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
            self.assertEqual(int(found[name], 16), 0, name)
        self.assertEqual(found["Seccomp"], "2")
        self.assertEqual(found["NoNewPrivs"], "1")
        self.assertEqual((found["host"], found["cwd"]), ("sandbox", "/workspace"))

    def test_the_guest_is_a_sub_uid_for_the_host(self):
        reply = self.start("import time; print('up', flush=True); time.sleep(600)")
        pid = wait_until(lambda: guests_of(self.client.instance), 20, "the guest's process")[0]
        first, count = sub_uid_range()
        uids = {int(uid) for uid in status_field(pid, "Uid").split()}
        self.assertEqual(len(uids), 1)
        uid = uids.pop()
        self.assertTrue(first <= uid < first + count, (uid, first, count))
        self.assertNotIn(uid, (0, account().pw_uid, 65534))
        self.assertTrue(all(first <= int(gid) < first + count for gid in status_field(pid, "Gid").split()))
        self.assertEqual(read(f"/proc/{pid}/oom_score_adj").strip(), "1000")
        # Code and metadata travel in frames alone.
        self.assertNotIn("sleep(600)", read(f"/proc/{pid}/cmdline"))
        self.client.cancel(reply)
        self.assert_nothing_left()

    def test_only_its_own_processes_are_visible(self):
        found = self.report("""
            import json, os
            print(json.dumps({p: open(f"/proc/{p}/cmdline").read().split("\\0")[0]
                              for p in os.listdir("/proc") if p.isdigit()}))
            """)
        self.assertEqual(len(found), 2, found)
        self.assertRegex(found["1"], "init|catatonit")

    def test_an_init_reaps_orphans(self):
        found = self.report("""
            import json, os, time
            if os.fork() == 0:
                if os.fork() == 0:
                    os.setsid()
                    time.sleep(0.1)
                    os._exit(0)
                os._exit(0)
            os.wait()
            time.sleep(1)
            print(json.dumps([p for p in os.listdir("/proc") if p.isdigit()]))
            """)
        self.assertEqual(len(found), 2, found)

    def test_the_environment_is_a_fixed_list(self):
        found = self.report("""
            import json, os
            first = dict(e.split("=", 1) for e in open("/proc/1/environ").read().split("\\0") if e)
            print(json.dumps({"own": dict(os.environ), "first": first}))
            """)
        fixed = {"PATH", "HOME", "LANG", "TMPDIR", "MPLCONFIGDIR", "PYTHONDONTWRITEBYTECODE", "PYTHONNOUSERSITE",
                 "HOSTNAME", "container", "LC_CTYPE"}
        self.assertLessEqual(set(found["own"]), fixed | {"MCP_AVAILABLE_SERVERS", "MPLBACKEND"})
        self.assertLessEqual(set(found["first"]), fixed)
        self.assertEqual(found["own"]["HOME"], "/workspace")

    # -- system calls ------------------------------------------------------------------------------

    def test_system_calls(self):
        """Each blocked call, and what must work: threads, both kinds of multiprocessing, subprocess, asyncio…"""
        expected = json.loads(as_account(PYTHON, "-c", inside("seccomp_probe"), "--expected"))
        self.assertGreater(len(expected), 100)
        found = self.report(inside("seccomp_probe"), timeout=100)
        found.pop("works_numpy")
        self.assertEqual({name: found.get(name) for name in expected}, expected)

    def test_programs_in_memory_gain_nothing(self):
        """memfd_create gets around noexec: what it runs has no more rights."""
        found = self.report("""
            import json, os
            fd = os.memfd_create("program")
            os.write(fd, open("/bin/cat", "rb").read())
            reading, writing = os.pipe()
            if os.fork() == 0:
                os.dup2(writing, 1)
                os.execve(fd, ["cat", "/proc/self/status"], {})
            os.close(writing)
            text = open(reading).read()
            print(json.dumps(dict(line.split(":", 1) for line in text.splitlines())))
            """)
        self.assertEqual(int(found["CapEff"], 16) + int(found["CapBnd"], 16), 0)
        self.assertEqual((found["NoNewPrivs"].strip(), found["Seccomp"].strip()), ("1", "2"))

    def test_ulimits(self):
        found = self.report("""
            import json, resource
            print(json.dumps({name: resource.getrlimit(getattr(resource, "RLIMIT_" + name.upper()))
                              for name in ("nofile", "nproc", "fsize", "core")}))
            """)
        self.assertEqual(found["core"], [0, 0])
        self.assertEqual(found["fsize"], [128 << 20] * 2)
        self.assertLessEqual(found["nofile"][1], 1024)
        self.assertLessEqual(found["nproc"][1], 4096)

    def test_a_file_can_not_grow_over_its_limit(self):
        """/projects has no size, so this is what bounds a file in it."""
        found = self.report("""
            import errno, json, os
            fd = os.open("/projects/sparse", os.O_CREAT | os.O_WRONLY)
            try:
                os.pwrite(fd, b"x", 128 << 20)
                found = "written"
            except OSError as e:
                found = errno.errorcode[e.errno]
            os.unlink("/projects/sparse")
            print(json.dumps(found))
            """)
        self.assertEqual(found, "EFBIG")

    # -- /projects ---------------------------------------------------------------------------------

    def test_projects_is_shared_with_the_account(self):
        self.run_well("""
            import os
            os.makedirs("/projects/made/deep")
            for path, mode in (("/projects/open", 0o644), ("/projects/closed", 0o600),
                               ("/projects/made/deep/file", 0o640)):
                with open(path, "w") as file:
                    file.write("from the guest")
                os.chmod(path, mode)
            """)
        folder = os.path.join(self.world.state, "user_tools")
        self.assertEqual(as_account("cat", folder + "/open"), "from the guest")
        self.assertEqual(as_account("cat", folder + "/made/deep/file"), "from the guest")
        as_account("sh", "-c", 'echo from the host >"$1"', "sh", folder + "/hosts")
        answer = self.run_well("""
            print(open("/projects/hosts").read(), end="")
            open("/projects/hosts", "a").write("and the guest\\n")
            print(open("/projects/closed").read())
            """)
        self.assertEqual(answer["stdout"], "from the host\nfrom the guest\n")
        self.assertEqual(as_account("cat", folder + "/hosts"), "from the host\nand the guest\n")
        as_account("rm", "-r", folder + "/made", folder + "/open", folder + "/hosts")
        self.assertEqual(os.listdir(folder), ["closed"])
        as_account("rm", "-f", folder + "/closed")

    def test_what_a_guest_locked_in_projects_can_be_deleted(self):
        self.run_well("""
            import os
            os.mkdir("/projects/locked", 0o700)
            open("/projects/locked/file", "w").write("secret")
            os.chmod("/projects/locked/file", 0o600)
            os.chmod("/projects/locked", 0o500)
            """)
        folder = os.path.join(self.world.state, "user_tools")
        as_account("podman", "unshare", "cat", folder + "/locked/file")
        as_account("podman", "unshare", "rm", "-r", folder + "/locked")
        self.assertFalse(os.path.exists(folder + "/locked"))

    def test_projects_does_not_hold_the_configuration(self):
        self.world.write_config("canary.json", {"mcpServers": {}})
        found = self.report("""
            import json, os
            seen = []
            for folder, _, files in os.walk("/"):
                if not folder.startswith(("/proc", "/sys", "/usr")):
                    seen += [f for f in files if f == "canary.json"]
            print(json.dumps({"seen": seen, "above": os.path.exists("/projects/../canary.json")}))
            """)
        self.assertEqual(found, {"seen": [], "above": False})

    def test_a_link_in_projects_leads_nowhere(self):
        """The host's own reads don't follow what a guest placed there."""
        self.run_well("""
            import os
            os.symlink("/etc/passwd", "/projects/link")
            os.mkfifo("/projects/pipe")
            """)
        self.assert_still_serves()
        fresh = self.world.client()
        self.assert_still_serves(fresh)
        self.assertEqual(fresh.close(patience(10)), 0)
        folder = os.path.join(self.world.state, "user_tools")
        as_account("rm", folder + "/link", folder + "/pipe")
