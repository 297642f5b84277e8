#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Strikes jobs with faults, and looks at what becomes of them.

    tests/faults/campaign.py [--seed N] [--faults N | --seconds S] [--only REGEX] [--lab]

Every fault is drawn from a seeded generator: what is struck (a method, a transport,
a number of ranks), by which fault, where and when. The transport "join" is UCX without
mpirun, which would end the others when a rank dies. A job must end by itself within
the time-out that it was given (5 s at the least) and 5 s more, say why, and leave no process; a fault
that is over soon must change nothing. A run that resumes must end with the
parameters and the state of a run that nothing struck, bit for bit. Damaged
checkpoints must be refused, or do no harm. No process may crash: by an assertion, a
signal that nobody sent, or a sanitizer's report. With --lab (root) hosts are struck, too: an
emulated cluster of share/lab, a rank on each host. The outcome is a table; the exit status
is 1 if anything crashed, hung, was lost, or differed in silence.
"""
import argparse, fcntl, functools, json, os, pathlib, random, re, shutil, signal, statistics, subprocess, sys, tempfile, time, uuid

TIMEOUT_S = 3
LEAST_S = 5      # what a time-out below counts as, between steps
START_S = 20     # what a start may take where nothing tells that a rank is stopped, as on another host
GRACE_S = 5      # after the verdict
HANG_S = 60      # nobody waits any longer
PATIENCE_S = 60  # of runs that nothing strikes, on a machine that is busy
STEPS, EVERY = 240, 30

METHODS = {
    "ring": "--algorithm ring",
    "library": "--algorithm library",
    "auto": "",
    "q8": "--codecs q8",
    "stale": "--staleness 2",
    "streaming": "--period streaming:steps=20,fragments=2,delay=4",
    "zero1": "--shard zero1",
    "zero3": "--shard zero3",
}
for facts in sorted(pathlib.Path(__file__).parent.glob("../entries/selection/*.json")):
    if facts.stem != "dense":
        METHODS[facts.stem] = json.loads(facts.read_text(encoding="utf-8"))["options"]
CALLS = {
    "mpi": ["MPI_Init_thread", "MPI_Comm_dup", "MPI_Comm_split_type", "MPI_Allreduce", "MPI_Comm_free",
            "MPI_Isend", "MPI_Irecv", "MPI_Finalize"],
    "ucx": ["ucp_worker_create", "ucp_ep_create", "ucp_tag_send_nbx", "ucp_tag_recv_nbx", "ucp_ep_close_nbx",
            "MPI_Isend", "MPI_Finalize"],
    "join": ["ucp_worker_create", "ucp_ep_create", "ucp_tag_send_nbx", "ucp_tag_recv_nbx", "ucp_ep_close_nbx"],
}
PARTING = {"ucp_ep_close_nbx", "MPI_Finalize"}
# In mpirun's place, of ranks that join without it: nobody ends the others when one dies.
PLAIN = ["bash", "-c", """for ((r = 0; r < $0; r++)); do OMPI_COMM_WORLD_RANK=$r "$@" --rank $r & pids[r]=$!; done
for r in "${!pids[@]}"; do
    wait ${pids[r]}; s=$?; [ $s = 0 ] || worst=$s
    [ $s -le 128 ] || echo "rank $r exited on signal $((s - 128)) "
done; exit $worst"""]
OFTEN = {"MPI_Isend", "MPI_Irecv", "ucp_tag_send_nbx", "ucp_tag_recv_nbx"}
COMMANDS = ["gf-allreduce -b 4K -e 64K -n 400 --timeout 3s", "gf-profile --pairs --budget 3s --timeout 3s",
            "gf-profile --budget 3s --timeout 3s", "gf-topo"]
KINDS = {  # how often, relative to each other
    "kill, any time": 3, "stop, any time": 3, "kill at a call": 3, "stop at a call": 6, "stop at a call, other commands": 2,
    "slow, any time": 2, "kill all": 1, "end the launcher": 1, "launcher stopped, too": 1, "full disk": 2, "damage": 4,
}


BAD = ("crash", "hang", "late", "lost", "silent", "status")
# What glibc, Open MPI, UCX, sanitizers and mpirun say of a process that crashes
CRASH = re.compile(r"Assertion .* failed|==== backtrace|Caught signal|Process received signal|stack smashing|buffer overflow|"
                   r"(malloc|free|realloc)\(\): |corrupted (size|double)|[a-z]+Sanitizer|runtime error: |exited on\s+signal (4|5|6|7|8|11|31) ")

LAB_KINDS = {"host cut": 3, "host cut for a while": 2, "host slow for a while": 2, "host dies": 2}
LAB = f"f{os.getpid()}"
HOSTS = 3


def say(text):
    print(text, flush=True)


@functools.lru_cache(None)
def environment():
    """This process's, with what tests tell mpirun."""
    lines = subprocess.run(["bash", "-c", ". \"$0\"; env -0", os.path.join(os.path.dirname(__file__), "..", "launcher.sh")],
                           check=True, stdout=subprocess.PIPE).stdout.decode().split("\0")
    return dict(line.split("=", 1) for line in lines if "=" in line)


class Job:
    """Processes that carry a mark in their environment, below one mpirun."""
    crash = ""  # what the last that crashed said

    def __init__(self, folder, ranks, command, extra=None, launcher=None):
        self.mark = uuid.uuid4().hex
        env = dict(environment(), GF_FAULTS_MARK=self.mark, **(extra or {}))
        self.log = open(os.path.join(folder, "log.txt"), "w+")
        self.began = time.monotonic()
        self.mpirun = subprocess.Popen((launcher or [*PLAIN, str(ranks)] * ("--join" in command) or
                                        ["mpirun", "--bind-to", "none", "-np", str(ranks)]) + command, cwd=folder,
                                       env=env, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)

    def living(self):
        """(pid, words of its environment) of the processes that live."""
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/environ", "rb") as f:
                    words = f.read().split(b"\0")
                with open(f"/proc/{pid}/stat") as f:
                    state = f.read().rsplit(")", 1)[1].split()[0]
            except OSError:
                continue
            if f"GF_FAULTS_MARK={self.mark}".encode() in words and state != "Z":
                yield int(pid), words

    def ranks(self):
        """{rank: pid} of the processes that live."""
        return {int(word.split(b"=")[1]): pid for pid, words in self.living()
                for word in words if word.startswith(b"OMPI_COMM_WORLD_RANK=")}

    def signal(self, what, pids):
        for pid in pids:
            try:
                os.kill(pid, what)
            except ProcessLookupError:
                pass

    def stopped(self):
        """Ranks that a signal has stopped."""
        def state(pid):
            try:
                with open(f"/proc/{pid}/stat") as f:
                    return f.read().rsplit(")", 1)[1].split()[0]
            except OSError:
                return ""
        return [r for r, pid in self.ranks().items() if state(pid) == "T"]

    def processor_s(self):
        """Seconds of a processor that its ranks have had: few, if only the machine is busy."""
        ticks = 0
        for pid in self.ranks().values():
            try:
                with open(f"/proc/{pid}/stat") as f:
                    ticks += sum(map(int, f.read().rsplit(")", 1)[1].split()[11:13]))
            except OSError:
                pass
        return ticks / os.sysconf("SC_CLK_TCK")

    def wait(self, most_s, but=(), launcher=True):
        """Until no rank lives but those, and no mpirun; seconds, or None."""
        began = alone = time.monotonic()
        while time.monotonic() - began < most_s:
            left = set(self.ranks()) - set(but)
            if not left and (but or not launcher or self.mpirun.poll() is not None):
                return time.monotonic() - began
            # a rank that stops when all others have ended: nothing waits for it but mpirun
            if not left or left - set(self.stopped()):
                alone = time.monotonic()
            elif time.monotonic() - alone > GRACE_S:
                self.signal(signal.SIGCONT, self.ranks().values())
            time.sleep(0.02)
        return None

    def end(self):
        self.signal(signal.SIGKILL, [pid for pid, _ in self.living()] + ([self.mpirun.pid] if self.mpirun.poll() is None else []))
        self.mpirun.wait()
        self.log.seek(0)
        text = self.log.read()
        self.log.close()
        found = CRASH.search(text)
        Job.crash = text[max(0, found.start() - 200):] if found else Job.crash
        return text


class Campaign:
    def __init__(self, options):
        self.o, self.rng = options, random.Random(options.seed)
        self.scratch = tempfile.mkdtemp(prefix="gf-faults.", dir=options.scratch)
        self.references, self.rows, self.details = {}, {}, []
        build = os.path.abspath(os.environ.get("BUILD", "build"))
        os.environ["PATH"] = f"{build}/bin:" + os.environ["PATH"]
        self.strike = f"{build}/faults/strike.so"
        self.kinds = dict(KINDS)
        if options.lab:
            self.lab("up", LAB, "--hosts", str(HOSTS))
            self.kinds.update(LAB_KINDS)
        listed = subprocess.run(["gf-allreduce", "--list"], capture_output=True, text=True, check=True).stdout
        self.transports = options.transports or ["mpi"] + (["ucx", "join"] if re.search(r"^transport +ucx", listed, re.M) else [])

    def lab(self, *words):
        tool = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../share/lab/gf-lab")
        done = subprocess.run([tool, *words], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        if done.returncode and words[0] == "up":
            raise SystemExit(f"campaign: {done.stderr.strip()}")

    def training(self, case, resume=False, timeout_s=PATIENCE_S):
        method, ranks, transport = case
        plan = os.path.join(self.o.references or self.scratch, f"{method}.{ranks}.json")
        if not os.path.exists(plan):
            topo = os.path.join(self.scratch, "topo.json")
            run = lambda words, out: subprocess.run(words, stdout=open(out, "w"), check=True, stderr=subprocess.DEVNULL)
            run(["gf-topo", "-q", "--synthetic", f"host:{ranks}@8GB/s,1us"], topo)
            run(["gf-plan", "-q", "--model", "digits-mlp", "--ranks", str(ranks)] + METHODS[method].split() + [topo], plan + ".new")
            os.rename(plan + ".new", plan)
        return (["gf-train", "-q", "--plan", plan, "--model", "digits-mlp", "--data", "synthetic:2000", "--batch", "8",
                 "--epochs", "1000", "--threads", "1", "--steps", str(STEPS), "--checkpoint", "ckpt", "--checkpoint-every",
                 str(EVERY), "--timeout", f"{timeout_s}s"] + self.meeting(transport, ranks) + (["--resume"] if resume else []))

    def meeting(self, transport, ranks):
        if transport == "join":
            return ["--join", f"meet-{uuid.uuid4().hex}", "--ranks", str(ranks)]
        return ["--transport", transport] * (transport != "mpi")

    def reference(self, case):
        """The state that a run ends with which nothing strikes, and how long it takes."""
        if case in self.references:
            return self.references[case]
        folder = os.path.join(self.o.references or self.scratch, ".".join(map(str, case)))
        if not state_of(folder, case[1]):
            os.makedirs(folder, exist_ok=True)
            job = Job(folder, case[1], self.training(case))
            took = job.wait(3 * HANG_S)
            text = job.end()
            if took is None or job.mpirun.returncode != 0:
                raise SystemExit(f"campaign: {case} does not train: {text}")
            with open(os.path.join(folder, "took"), "w") as f:
                f.write(str(took))
        with open(os.path.join(folder, "took")) as f:
            self.references[case] = (folder, float(f.read()), state_of(folder, case[1]))
        return self.references[case]

    # --- faults

    def draw_moment(self):
        """Words for people, and: that many checkpoints, and then that many seconds."""
        sets = self.rng.randrange(STEPS // EVERY)
        extra = self.rng.uniform(0, .05 if sets else .8)
        return f"{1000 * extra:.0f} ms after " + (f"step {EVERY * sets}" if sets else "the start"), sets, extra

    def await_moment(self, moment, job, folder):
        while job.mpirun.poll() is None and moment[1] and not any(int(n[5:]) >= EVERY * moment[1] for n in glob_steps(folder)):
            time.sleep(0.003)
        time.sleep(moment[2])

    def struck(self, kind, case, folder):
        """Runs a job, strikes it, and returns (seconds to the end or None, status, text, what)."""
        ranks, rng, extra, at, what = case[1], self.rng, {}, None, ""
        whole = self.reference(case)[1]
        victim = rng.randrange(ranks)
        if "call" in kind:
            call = rng.choice(CALLS[case[2]])
            nth = rng.randint(1, 400 if call in OFTEN and rng.random() < .5 else 12 if call in OFTEN else 2)
            extra = {"LD_PRELOAD": self.strike, "GF_STRIKE": f"{call}:{nth}:{kind.split()[0]}:{victim}"}
            what = f"{call} {nth}, rank {victim}"
        elif kind == "full disk":
            call = rng.choice(["write", "fsync", "rename"])
            extra = {"LD_PRELOAD": self.strike, "GF_STRIKE": f"{call}:{rng.randint(1, 30)}:full:{victim}"}
            what = extra["GF_STRIKE"]
        else:
            at = self.draw_moment()
            what = f"{at[0]}, rank {victim}"
        job = Job(folder, ranks, self.training(case, timeout_s=TIMEOUT_S), extra)
        began, but = None, ()
        if at is None:
            # the strike comes by itself
            while job.mpirun.poll() is None and time.monotonic() - job.began < 3 * HANG_S:
                if kind.startswith("stop") and job.stopped():
                    began = time.monotonic()
                    break
                time.sleep(0.02)
            began = began or time.monotonic()
        else:
            self.await_moment(at, job, folder)
            pids = job.ranks()
            began = time.monotonic()
            if kind == "kill all":
                job.signal(signal.SIGKILL, pids.values())
            elif kind == "end the launcher":
                how = rng.choice([signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
                what = f"{how.name} {at[0]}"
                job.signal(how, [job.mpirun.pid])
            elif kind == "slow, any time":
                job.signal(signal.SIGSTOP, [pids[victim]] if victim in pids else [])
                time.sleep(rng.uniform(.1, 1))
                job.signal(signal.SIGCONT, [pids[victim]] if victim in pids else [])
            else:
                stop = "stop" in kind
                job.signal(signal.SIGSTOP if stop else signal.SIGKILL, [pids[victim]] if victim in pids else [])
                if kind == "launcher stopped, too" and victim in pids:
                    job.signal(signal.SIGSTOP, [job.mpirun.pid])
                    but = (victim,)
        if case[2] == "join" and "stop" in kind and victim in job.ranks():  # nobody ends it
            but = (victim,)
        took = job.wait(HANG_S if "slow" not in kind else HANG_S + whole, but)
        took = None if took is None else time.monotonic() - began
        if but:  # it has words of the others yet
            job.signal(signal.SIGCONT, [job.mpirun.pid, *job.ranks().values()])
            job.wait(GRACE_S)
        return took, job, what

    def host(self, kind, case, folder):
        """A host of the lab, with all that runs on it."""
        rng = self.rng
        at, host = self.draw_moment(), rng.randrange(HOSTS)
        lasts = rng.uniform(.2, 2)
        what = f"h{host} {at[0]}" + (f" for {lasts:.1f} s" if "while" in kind else "")
        tool = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../share/lab/gf-lab")
        job = Job(folder, case[1], self.training(case, timeout_s=TIMEOUT_S), launcher=[tool, "run", LAB, "--timeout", "600"])
        link = lambda state: self.lab("exec", LAB, f"h{host}", "ip", "link", "set", "eth0", state)
        rate = lambda r: self.lab("rate", LAB, f"h{host}", r)
        self.await_moment(at, job, folder)
        began = time.monotonic()
        alive = job.ranks()
        if kind == "host dies":
            job.signal(signal.SIGKILL, [alive[host]] if host in alive else [])
        elif "slow" in kind:
            rate("20mbit")
            time.sleep(lasts)
            rate("1gbit")
        else:
            link("down")
            if "while" in kind:
                time.sleep(lasts)
                link("up")
        took = job.wait(HANG_S, launcher=not kind == "host cut")
        took = None if took is None else time.monotonic() - began
        if kind == "host cut":
            link("up")
            job.wait(GRACE_S)
        return took, job, what

    def resume(self, case, folder):
        """None if the run goes on to the right bits, or what is wrong."""
        job = Job(folder, case[1], self.training(case, True))
        took = job.wait(3 * HANG_S)  # nothing is struck: it may be slow
        left, steps, had_s = sorted(job.ranks()), glob_steps(folder), job.processor_s()
        text = job.end()
        if took is None:
            return (f"resume: hangs: ranks {left} are left and had a processor for {had_s:.1f} s, "
                    f"the newest set is {steps[-1]}: {text.strip()[-300:]}")
        if job.mpirun.returncode != 0:
            return f"resume: status {job.mpirun.returncode}: {text.strip()[-300:]}"
        if state_of(folder, case[1]) != self.reference(case)[2]:
            return "resume: other bits"
        return None

    def fault(self, kind, case, folder):
        took, job, what = (self.host if kind in LAB_KINDS else self.struck)(kind, case, folder)
        left = "" if took else f"ranks {sorted(job.ranks())} are left, of which {job.stopped()} are stopped"
        text = job.end()
        status = job.mpirun.returncode
        done = status == 0
        if took is None:
            return "hang", f"{what}: {left}", took, text
        if kind == "slow, any time" and not done:
            return "status", f"{what}: {status}", took, text
        # mpirun ends the others at once
        ended = "launcher" in kind or "dies" in kind or kind == "kill all" or ("kill" in kind and case[2] != "join")
        if not done and not ended and "gf-" not in text and not state_of(folder, case[1]):
            return "silent", what, took, text
        # what was there may have been written to the end
        if done and state_of(folder, case[1]) != self.reference(case)[2]:
            return "lost", what, took, text
        if done:
            return ("ok" if kind == "slow, any time" else "done"), what, took, text
        # words and a launcher on other hosts take a little longer
        start = kind in LAB_KINDS and "MPI has not started" in text
        most = (START_S if start else LEAST_S) + GRACE_S + (2 if kind in LAB_KINDS else 0)
        if took > most and "slow" not in kind and "while" not in kind:
            return "late", what, took, text
        # a job that had no checkpoint yet has nothing to resume from
        wrong = self.resume(case, folder) if glob_steps(folder) else None
        if wrong:
            return "lost", f"{what}: {wrong}", took, text
        return "ok", what, took, text

    def other(self, kind, case, folder):
        """Another command, stopped at a call."""
        command = self.rng.choice(COMMANDS)
        transport = "mpi" if command == "gf-topo" else case[2]
        call, victim = self.rng.choice(CALLS[transport]), self.rng.randrange(case[1])
        strike = f"{call}:{self.rng.randint(1, 400 if call in OFTEN else 2)}:stop:{victim}"
        job = Job(folder, case[1], command.split() + ["-q"] + self.meeting(transport, case[1]),
                  {"LD_PRELOAD": self.strike, "GF_STRIKE": strike})
        began = None
        while job.mpirun.poll() is None and time.monotonic() - job.began < HANG_S and not began:
            began = time.monotonic() if job.stopped() else None
            time.sleep(0.02)
        took = job.wait(2 * HANG_S, (victim,) if began and transport == "join" else ())  # gf-topo takes 60 s
        took = None if took is None else time.monotonic() - (began or time.monotonic())
        text = job.end()
        what = f"{command.split()[0]}, {strike}"
        most = (60 if command == "gf-topo" else LEAST_S) + GRACE_S
        # ranks that part do not need each other, and the result is there
        parted = call in PARTING and text.strip()
        if began and took is not None and "gf-" not in text and not parted:
            return "silent", what, took, text
        return ("hang" if took is None else "late" if took > most else "ok" if began else "done"), what, took, text

    def damage(self, kind, case, folder):
        """A file of the newest set, or two of its files."""
        source = self.reference(case)[0]
        shutil.copytree(os.path.join(source, "ckpt"), os.path.join(folder, "ckpt"))
        steps = glob_steps(folder)
        if not steps:
            return "done", "no checkpoint", 0, ""
        newest = os.path.join(folder, "ckpt", steps[-1])
        files = sorted(os.listdir(newest))
        name = self.rng.choice(files)
        path = os.path.join(newest, name)
        size = os.path.getsize(path)
        how = self.rng.choice(["flip", "header", "truncate", "append", "zero", "missing", "swapped", "older"])
        what = f"{how}: {steps[-1]}/{name}"
        with open(path, "r+b") as f:
            if how in ("flip", "header"):
                at = self.rng.randrange(min(size, 512) if how == "header" else size)
                f.seek(at)
                byte = f.read(1)[0]
                f.seek(at)
                f.write(bytes([byte ^ 1 << self.rng.randrange(8)]))
            elif how == "truncate":
                f.truncate(self.rng.randrange(size))
            elif how == "append":
                f.seek(size)
                f.write(b"\0" * self.rng.randint(1, 100))
            elif how == "zero":
                f.write(b"\0" * size)
        parts = [f for f in files if f.startswith("rank-")]
        if how == "missing":
            os.remove(path)
        elif how == "swapped" and len(parts) > 1:
            a, b = (os.path.join(newest, f) for f in self.rng.sample(parts, 2))
            os.rename(a, a + ".x"), os.rename(b, a), os.rename(a + ".x", b)
        elif how == "older" and len(steps) > 1:
            shutil.copy(os.path.join(folder, "ckpt", steps[-2], name), path)
        global STEPS
        STEPS, kept = STEPS + EVERY, STEPS  # beyond the damage
        try:
            self.longer = getattr(self, "longer", {})
            if case not in self.longer:
                again = tempfile.mkdtemp(dir=self.scratch)
                shutil.copytree(os.path.join(source, "ckpt"), os.path.join(again, "ckpt"))
                job = Job(again, case[1], self.training(case, True))
                job.wait(HANG_S)
                job.end()
                self.longer[case] = state_of(again, case[1])
            job = Job(folder, case[1], self.training(case, True))
            took = job.wait(HANG_S)
            text = job.end()
            if took is None:
                return "hang", what, took, text
            if job.mpirun.returncode != 0:
                return ("ok" if "gf-train" in text else "silent"), what, took, text
            return ("ok" if state_of(folder, case[1]) == self.longer[case] else "lost"), what, took, text
        finally:
            STEPS = kept

    # --- all of them

    def one(self):
        names = [k for k in self.kinds if not self.o.only or re.search(self.o.only, k)]
        kind = self.rng.choices(names, [self.kinds[k] for k in names])[0]
        case = (self.rng.choice(self.o.methods or list(METHODS)), self.rng.choice([2, 3, 4]), self.rng.choice(self.transports))
        if case[0] == "library":
            case = (case[0], case[1], "mpi")
        if case[2] == "join" and ("launcher" in kind or kind in LAB_KINDS):
            case = (case[0], case[1], "ucx")
        if kind in LAB_KINDS:
            case = (case[0], HOSTS, case[2])
        folder = tempfile.mkdtemp(dir=self.scratch)
        Job.crash = ""
        do = self.damage if kind == "damage" else self.other if "other" in kind else self.fault
        outcome, what, took, text = do(kind, case, folder)
        if Job.crash:
            outcome, text = "crash", Job.crash[:600]
        shutil.rmtree(folder)
        row = self.rows.setdefault(kind, {"n": 0, "s": []})
        row["n"] += 1
        row[outcome] = row.get(outcome, 0) + 1
        if took is not None and outcome in ("ok", "late"):
            row["s"].append(took)
        if outcome in BAD or self.o.verbose:
            say(f"{outcome}: {kind}: {case[0]}, {case[1]} ranks, {case[2]}: {what}: "
                f"{'-' if took is None else f'{took:.1f} s'}" + ("" if outcome in ("ok", "done") else f"\n{text.strip()[-600:]}"))
        return outcome

    def add_totals(self):
        """What earlier campaigns found, others beside this one, and this one, becomes the file's."""
        with open(self.o.totals, "a+") as f:
            fcntl.flock(f, fcntl.LOCK_EX)
            f.seek(0)
            for kind, row in json.loads(f.read() or "{}").items():
                mine = self.rows.setdefault(kind, {})
                mine.update({k: mine.get(k, type(v)()) + v for k, v in row.items()})
            f.truncate(0)
            json.dump(self.rows, f)

    def table(self):
        """In Markdown, as docs/reliability.md has it."""
        say(f"| fault | n | struck | {' | '.join(BAD)} | seconds to the end: median | greatest |\n|{'---|' * 11}")
        for kind, r in sorted(self.rows.items()):
            s = (statistics.median(r["s"]), max(r["s"])) if r["s"] else ()
            say(f"| {kind} | {r['n']} | {r['n'] - r.get('done', 0)} | {' | '.join(str(r.get(k, 0)) for k in BAD)} | " +
                (" | ".join(f"{x:.1f}" for x in s) or "- | -") + " |")
        n, done = (sum(r.get(k, 0) for r in self.rows.values()) for k in ("n", "done"))
        say(f"{n} faults, {n - done} struck, seed {self.o.seed}")

    def run(self):
        began, n, bad = time.monotonic(), 0, 0
        try:
            while n < self.o.faults and time.monotonic() - began < self.o.seconds:
                bad += self.one() in BAD
                n += 1
        finally:
            if self.o.totals:
                self.add_totals()
            self.table()
            shutil.rmtree(self.scratch, ignore_errors=True)
            if self.o.lab:
                self.lab("down", LAB)
        return 1 if bad else 0


def glob_steps(folder):
    at = os.path.join(folder, "ckpt")
    names = os.listdir(at) if os.path.isdir(at) else []
    return sorted((n for n in names if re.fullmatch(r"step-\d+", n)), key=lambda n: int(n[5:]))


def state_of(folder, ranks):
    """Tensors of the last step's parts, without what is only this run's."""
    state = []
    for rank in range(ranks):
        try:
            with open(os.path.join(folder, "ckpt", f"step-{STEPS}", f"rank-{rank}.safetensors"), "rb") as f:
                data = f.read()
        except OSError:
            return None
        length = int.from_bytes(data[:8], "little")
        header = json.loads(data[8:8 + length])
        header.pop("__metadata__", None)
        state.append((json.dumps(header, sort_keys=True), data[8 + length:]))
    return state


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # with a table
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--faults", type=int, default=10**9, help="how many")
    p.add_argument("--seconds", type=float, default=1e9, help="when to stop")
    p.add_argument("--only", help="kinds of faults: a regular expression")
    p.add_argument("--methods", nargs="*", choices=list(METHODS))
    p.add_argument("--transports", nargs="*", choices=list(CALLS))
    p.add_argument("--scratch", help="folder for scratch files")
    p.add_argument("--references", help="folder of runs that nothing struck, kept for the next campaign of this build")
    p.add_argument("--totals", help="file of what campaigns found: this one's is added, and the table is of all")
    p.add_argument("--lab", action="store_true", help="strike hosts of an emulated cluster, too (root)")
    p.add_argument("--verbose", action="store_true", help="a line for every fault")
    return Campaign(p.parse_args()).run()


if __name__ == "__main__":
    sys.exit(main())
