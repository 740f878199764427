"""Runs inside a sandbox and says of each system call whether the seccomp profile lets it through.

    seccomp_probe.py              prints {name: "blocked" | "allowed" | "absent" | …} as one JSON object
    seccomp_probe.py --expected   prints the same object as deploy/image/seccomp.json wants it

"blocked" is EPERM or ENOSYS or a fatal signal from the filter; "allowed" is success or any other error: the
arguments are chosen so that a call that passes the filter fails on them, or does no harm. Every probe has
a process of its own, so that one which is killed or hangs spoils nothing. "absent": no such call on this
machine. Calls that need a capability answer EPERM without any filter too; the profile names them all the same.
"""

import ctypes
import errno
import json
import mmap
import os
import platform
import signal
import socket
import struct
import sys
import time

MACHINE = platform.machine()
PROBE_SECONDS = 10
NEWNS, NEWUSER, NEWNET, NEWPID = 0x20000, 0x10000000, 0x40000000, 0x20000000
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long

# name: (number on x86_64, number on aarch64, arguments)
BLOCKED_CALLS = {
    "unshare_user": (272, 97, (NEWUSER,)),
    "unshare_mount": (272, 97, (NEWNS,)),
    "setns": (308, 268, (-1, 0)),
    "clone_newuser": (56, 220, (signal.SIGCHLD | NEWUSER, 0, 0, 0, 0)),
    "clone_newnet": (56, 220, (signal.SIGCHLD | NEWNET, 0, 0, 0, 0)),
    "clone_newpid": (56, 220, (signal.SIGCHLD | NEWPID, 0, 0, 0, 0)),
    "clone3": (435, 435, (0, 0)),
    "keyctl": (250, 219, (0, -3, 0)),
    "add_key": (248, 217, (0, 0, 0, 0, -3)),
    "request_key": (249, 218, (0, 0, 0, -3)),
    "mount": (165, 40, (0, 0, 0, 0, 0)),
    "umount2": (166, 39, (0, 0)),
    "fsopen": (430, 430, (0, 0)),
    "fsconfig": (431, 431, (-1, 0, 0, 0, 0)),
    "fsmount": (432, 432, (-1, 0, 0)),
    "fspick": (433, 433, (-1, 0, 0)),
    "move_mount": (429, 429, (-1, 0, -1, 0, 0)),
    "open_tree": (428, 428, (-1, 0, 0)),
    "mount_setattr": (442, 442, (-1, 0, 0, 0, 0)),
    "pivot_root": (155, 41, (0, 0)),
    "chroot": (161, 51, (0,)),
    "io_uring_setup": (425, 425, (1, 0)),
    "io_uring_enter": (426, 426, (-1, 0, 0, 0, 0)),
    "io_uring_register": (427, 427, (-1, 0, 0, 0)),
    "io_setup": (206, 0, (0, 0)),
    "userfaultfd": (323, 282, (1,)),
    "bpf": (321, 280, (0, 0, 0)),
    "perf_event_open": (298, 241, (0, 0, -1, -1, 0)),
    "ptrace": (101, 117, (0, 0, 0, 0)),
    "process_vm_readv": (310, 270, (0, 0, 0, 0, 0, 1)),
    "process_vm_writev": (311, 271, (0, 0, 0, 0, 0, 1)),
    "process_madvise": (440, 440, (-1, 0, 0, 0, 0)),
    "process_mrelease": (448, 448, (-1, 0)),
    "pidfd_getfd": (438, 438, (-1, 0, 0)),
    "kcmp": (312, 272, (0, 0, 99, 0, 0)),
    "name_to_handle_at": (303, 264, (-1, 0, 0, 0, 0)),
    "open_by_handle_at": (304, 265, (-1, 0, 0)),
    "kexec_load": (246, 104, (0, 99, 0, 0)),
    "kexec_file_load": (320, 294, (-1, -1, 0, 0, 0)),
    "init_module": (175, 105, (0, 0, 0)),
    "finit_module": (313, 273, (-1, 0, 0)),
    "delete_module": (176, 106, (0, 0)),
    "reboot": (169, 142, (0, 0, 0, 0)),
    "swapon": (167, 224, (0, 0)),
    "swapoff": (168, 225, (0,)),
    "acct": (163, 89, (1,)),
    "quotactl": (179, 60, (0, 0, 0, 0)),
    "quotactl_fd": (443, 443, (-1, 0, 0, 0)),
    "syslog": (103, 116, (99, 0, 0)),
    "settimeofday": (164, 170, (1, 0)),
    "clock_settime": (227, 112, (0, 0)),
    "adjtimex": (159, 171, (0,)),
    "clock_adjtime": (305, 266, (0, 0)),
    "vhangup": (153, 58, ()),
    "iopl": (172, None, (0,)),
    "ioperm": (173, None, (0, 0, 0)),
    "modify_ldt": (154, None, (99, 0, 0)),
    "fanotify_init": (300, 262, (0, 0)),
    "fanotify_mark": (301, 263, (-1, 0, 0, -1, 0)),
    "lookup_dcookie": (212, 18, (0, 0, 0)),
    "sethostname": (170, 161, (0, 0)),
    "setdomainname": (171, 162, (0, 0)),
    "migrate_pages": (256, 238, (0, 0, 0, 0)),
    "move_pages": (279, 239, (0, 0, 0, 0, 0, 0)),
    "mq_open": (240, 180, (0, 0, 0, 0)),
    "vmsplice": (278, 75, (-1, 0, 0, 0)),
    "memfd_secret": (447, 447, (99,)),
    "sync": (162, 81, ()),
    "syncfs": (306, 267, (-1,)),
    "uselib": (134, None, (0,)),
    "personality_no_randomize": (135, 92, (0x40000,)),
    "statmount": (457, 457, (0, 0, 0, 0)),
    "listmount": (458, 458, (0, 0, 0, 0)),
}

# Family, type and protocol of sockets that must not come into being.
BLOCKED_SOCKETS = {
    "socket_netlink": (16, socket.SOCK_RAW, 0),
    "socket_netlink_audit": (16, socket.SOCK_RAW, 9),
    "socket_packet": (17, socket.SOCK_DGRAM, 0),
    "socket_vsock": (40, socket.SOCK_STREAM, 0),
    "socket_alg": (38, socket.SOCK_SEQPACKET, 0),
    "socket_bluetooth": (31, socket.SOCK_RAW, 0),
    "socket_can": (29, socket.SOCK_RAW, 1),
    "socket_key": (15, socket.SOCK_RAW, 2),
    "socket_tipc": (30, socket.SOCK_SEQPACKET, 0),
    "socket_rds": (21, socket.SOCK_SEQPACKET, 0),
    "socket_xdp": (44, socket.SOCK_RAW, 0),
    "socket_smc": (43, socket.SOCK_STREAM, 0),
    "socket_ax25": (3, socket.SOCK_DGRAM, 0),
    "socket_unspecified": (0, socket.SOCK_STREAM, 0),
    "socket_sctp": (2, socket.SOCK_STREAM, 132),
    "socket_mptcp": (2, socket.SOCK_STREAM, 262),
    "socket_icmp": (2, socket.SOCK_DGRAM, 1),
    "socket_raw": (10, socket.SOCK_RAW, 255),
}

# The kernel looks at the low 32 bits of the request alone, so the filter must do that too.
BLOCKED_IOCTLS = {
    "ioctl_tiocsti": 0x5412,
    "ioctl_tiocsti_high_bits": 0x1_0000_5412,
    "ioctl_tioclinux": 0x541C,
    "ioctl_tiocsetd": 0x5423,
    "ioctl_unknown": 0xDEAD,
}


def raw_call(number, *arguments):
    """The result of a system call, or the negated errno."""
    ctypes.set_errno(0)
    result = libc.syscall(ctypes.c_long(number), *(ctypes.c_long(a) for a in arguments))
    return -ctypes.get_errno() if result == -1 else result


def verdict(result):
    if result in (-errno.EPERM, -errno.ENOSYS):
        return "blocked"
    return "allowed"


def call_probe(name):
    x86, arm, arguments = BLOCKED_CALLS[name]
    number = {"x86_64": x86, "aarch64": arm}.get(MACHINE)
    if number is None:
        return "absent"
    result = raw_call(number, *arguments)
    if name.startswith("clone_") and result == 0:
        os._exit(0)  # the child of a clone that should not have happened
    return verdict(result)


def socket_probe(name):
    number = {"x86_64": 41, "aarch64": 198}[MACHINE]
    return verdict(raw_call(number, *BLOCKED_SOCKETS[name]))


def socketpair_probe():
    number = {"x86_64": 53, "aarch64": 199}[MACHINE]
    room = ctypes.create_string_buffer(8)
    return verdict(raw_call(number, 30, socket.SOCK_STREAM, 0, ctypes.addressof(room)))


def ioctl_probe(name):
    number = {"x86_64": 16, "aarch64": 29}[MACHINE]
    with open("/dev/null", "rb") as null:
        return verdict(raw_call(number, null.fileno(), BLOCKED_IOCTLS[name], 0))


def i386_probe():
    """getpid by the 32-bit entry, whose calls have numbers that the filter doesn't know."""
    if MACHINE != "x86_64":
        return "absent"
    code = b"\x53\xb8\x14\x00\x00\x00\xcd\x80\x5b\xc3"  # push rbx; mov eax, 20; int 0x80; pop rbx; ret
    page = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    page.write(code)
    entry = ctypes.addressof(ctypes.c_char.from_buffer(page))
    result = ctypes.CFUNCTYPE(ctypes.c_int)(entry)()
    return verdict(result)


def x32_probe():
    return "absent" if MACHINE != "x86_64" else verdict(raw_call(39 | 0x40000000))


# What programs need. Each returns, or raises what went wrong.


def works_threads():
    import threading

    seen = []
    threads = [threading.Thread(target=seen.append, args=(i,)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert sorted(seen) == list(range(8))


def works_subprocess():
    import subprocess

    assert subprocess.run(["sh", "-c", "echo hi"], capture_output=True, check=True).stdout == b"hi\n"


def square(queue, number):
    queue.put(number * number)


def multiprocessing_by(method):
    import multiprocessing

    context = multiprocessing.get_context(method)
    queue = context.Queue()
    process = context.Process(target=square, args=(queue, 7))
    process.start()
    assert queue.get(timeout=PROBE_SECONDS) == 49
    process.join()
    assert process.exitcode == 0


def works_multiprocessing():
    multiprocessing_by("fork")
    multiprocessing_by("spawn")


def works_shared_memory():
    from multiprocessing import shared_memory

    block = shared_memory.SharedMemory(create=True, size=4096)
    block.buf[0] = 1
    block.close()
    block.unlink()


def works_asyncio():
    import asyncio

    async def main():
        async def answer(reader, writer):
            writer.write(await reader.readline())
            await writer.drain()
            writer.close()

        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"line\n")
        assert await reader.readline() == b"line\n"
        writer.close()
        server.close()
        child = await asyncio.create_subprocess_exec("true")
        assert await child.wait() == 0

    asyncio.run(main())


def works_sockets():
    left, right = socket.socketpair()
    left.sendall(b"x")
    assert right.recv(1) == b"x"
    socket.socket(socket.AF_INET6, socket.SOCK_STREAM).close()
    socket.socket(socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_UDP).close()


def works_pty():
    import fcntl
    import termios

    master, slave = os.openpty()
    assert os.isatty(slave)
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    assert os.get_terminal_size(slave) == (80, 24)
    os.close(master)


def works_files():
    import shutil
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "a")
        with open(path, "w") as f:
            f.write("x" * 100_000)
            f.flush()
            os.fsync(f.fileno())
        shutil.copy2(path, path + "2")
        os.mkfifo(path + "3")
        os.replace(path, path + "5")


def works_memfd_and_pidfd():
    os.close(os.memfd_create("x"))
    os.close(os.pidfd_open(os.getpid()))


def works_signals():
    hits = []
    signal.signal(signal.SIGALRM, lambda *_: hits.append(1))
    signal.setitimer(signal.ITIMER_REAL, 0.01)
    time.sleep(0.1)
    assert hits


WORKS = {name: thing for name, thing in list(globals().items()) if name.startswith("works_")}


def numpy_probe():
    try:
        import numpy
    except ImportError:
        return "absent"
    a = numpy.random.default_rng(1).random((300, 300))
    assert numpy.allclose(a @ numpy.linalg.inv(a), numpy.eye(300), atol=1e-6)
    return "allowed"


def works_probe(thing):
    thing()
    return "allowed"


def in_child(probe, *arguments):
    """Runs a probe in a child; its verdict, or how the child ended."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        try:
            answer = probe(*arguments)
        except BaseException as e:  # a probe's failure is its result
            answer = f"broken: {type(e).__name__}: {e}"
        os.write(writing, answer.encode()[:1000])
        os._exit(0)
    os.close(writing)
    deadline = time.monotonic() + PROBE_SECONDS
    status = None
    while time.monotonic() < deadline:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            break
        time.sleep(0.001)
    else:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        return "hung"
    with os.fdopen(reading, "rb") as f:
        answer = f.read().decode(errors="replace")
    if os.WIFSIGNALED(status):
        by_filter = os.WTERMSIG(status) in (signal.SIGSYS, signal.SIGSEGV)
        return "blocked" if by_filter else f"signal {os.WTERMSIG(status)}"
    return answer or "no answer"


def probes():
    yield from ((name, call_probe, (name,)) for name in BLOCKED_CALLS)
    yield from ((name, socket_probe, (name,)) for name in BLOCKED_SOCKETS)
    yield from ((name, ioctl_probe, (name,)) for name in BLOCKED_IOCTLS)
    yield "socketpair_tipc", socketpair_probe, ()
    yield "i386_entry", i386_probe, ()
    yield "x32_entry", x32_probe, ()
    yield from ((name, works_probe, (thing,)) for name, thing in WORKS.items())
    yield "works_numpy", numpy_probe, ()


def expected():
    """What the profile wants, for this machine; works_numpy isn't in it, because an image needn't have numpy."""
    table = {}
    for name, _, _ in probes():
        if name == "works_numpy":
            continue
        table[name] = "allowed" if name.startswith("works_") else "blocked"
        if MACHINE != "x86_64" and (
            name in ("i386_entry", "x32_entry") or (name in BLOCKED_CALLS and BLOCKED_CALLS[name][1] is None)
        ):
            table[name] = "absent"
    return table


def main():
    if sys.argv[1:] == ["--expected"]:
        print(json.dumps(expected()))
        return
    print(json.dumps({name: in_child(probe, *arguments) for name, probe, arguments in probes()}))


if __name__ == "__main__":
    main()
