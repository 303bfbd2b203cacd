/** Ordinary programs as data: what each is about, its source, and what it prints when it finds what it expects. */

export interface OrdinaryProgram {
  code: string;
  stdout: string;
}

export const PYTHON: Readonly<Record<string, OrdinaryProgram>> = {
  "threads with locks, events, queues and timers": {
    code: `
import queue, threading
numbers, results, lock, go = queue.Queue(), [], threading.Lock(), threading.Event()
def work():
    go.wait()
    while (n := numbers.get()) is not None:
        with lock: results.append(n)
threads = [threading.Thread(target=work) for _ in range(20)]
for thread in threads: thread.start()
threading.Timer(0.05, go.set).start()
for n in [*range(500), *[None] * 20]: numbers.put(n)
for thread in threads: thread.join()
print(sum(results), threading.active_count())`,
    stdout: "124750 1\n",
  },
  "asyncio with subprocesses, threads and time limits": {
    code: `
import asyncio
async def shell(text, data=None):
    process = await asyncio.create_subprocess_shell(text, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE)
    out, _ = await process.communicate(data)
    return out.decode().strip(), process.returncode
async def main():
    print(await asyncio.gather(shell("cat", b"in"), shell("echo out; exit 3"), asyncio.to_thread(sum, [1, 2])))
    slow = await asyncio.create_subprocess_exec("sleep", "60")
    try:
        await asyncio.wait_for(slow.wait(), 0.1)
    except asyncio.TimeoutError:
        slow.terminate()
        print(await slow.wait())
asyncio.run(main())`,
    stdout: "[('in', 0), ('out', 3), 3]\n-15\n",
  },
  "subprocesses with pipes, sessions, signals and time limits": {
    code: `
import os, signal, subprocess, sys
print(subprocess.run("tr a-z A-Z | rev", shell=True, input="abc", capture_output=True, text=True).stdout)
try:
    subprocess.run(["sleep", "60"], timeout=0.1)
except subprocess.TimeoutExpired as error:
    print(type(error).__name__)
group = subprocess.Popen("sleep 60 & sleep 60", shell=True, start_new_session=True)
os.killpg(group.pid, signal.SIGTERM)
print(group.wait(), subprocess.run([sys.executable, "-c", "import os; os.abort()"]).returncode)
head = subprocess.run("yes | head -3 | wc -l", shell=True, capture_output=True, text=True)
print(head.stdout.strip(), head.stderr)
signal.signal(signal.SIGALRM, lambda *_: print("alarm"))
signal.setitimer(signal.ITIMER_REAL, 0.01)
signal.pause()`,
    stdout: "CBA\nTimeoutExpired\n-15 -6\n3 \nalarm\n",
  },
  "sqlite with two connections, a write-ahead log and a lock": {
    code: `
import sqlite3
one, two = (sqlite3.connect("log.db", timeout=0.05, isolation_level=None) for _ in range(2))
print(one.execute("pragma journal_mode = wal").fetchone()[0])
one.execute("create table t (x)")
one.execute("begin immediate"); one.execute("insert into t values (1)")
try:
    two.execute("insert into t values (2)")
except sqlite3.OperationalError as error:
    print(error, two.execute("select count(*) from t").fetchone())
one.execute("commit")
two.execute("insert into t values (2)")
print(one.execute("select sum(x) from t").fetchone())`,
    stdout: "wal\ndatabase is locked (0,)\n(3,)\n",
  },
  "a TLS handshake in memory, with a certificate of its own": {
    code: `
import ssl, subprocess
subprocess.run("openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout key.pem -out cert.pem -days 2 -subj /CN=here -addext subjectAltName=DNS:here".split(), check=True, capture_output=True)
def context(role):
    made = ssl.SSLContext(role)
    made.load_cert_chain("cert.pem", "key.pem") if role == ssl.PROTOCOL_TLS_SERVER else made.load_verify_locations("cert.pem")
    return made
up, down = ssl.MemoryBIO(), ssl.MemoryBIO()
server = context(ssl.PROTOCOL_TLS_SERVER).wrap_bio(up, down, server_side=True)
client = context(ssl.PROTOCOL_TLS_CLIENT).wrap_bio(down, up, server_hostname="here")
waiting = [client, server]
while waiting:
    for side in list(waiting):
        try:
            side.do_handshake()
            waiting.remove(side)
        except ssl.SSLWantReadError:
            pass
client.write(b"hello")
print(client.version(), server.read(), ssl.create_default_context().cert_store_stats()["x509_ca"] > 100)`,
    stdout: "TLSv1.3 b'hello' True\n",
  },
  "temporary files of every kind": {
    code: `
import os, shutil, tempfile
with tempfile.TemporaryFile() as file:
    file.write(b"x" * 10_000_000); file.seek(0); print(len(file.read()))
with tempfile.NamedTemporaryFile("w+", suffix=".txt", dir=".") as file:
    file.write("a"); file.flush(); print(open(file.name).read(), os.path.dirname(file.name))
with tempfile.SpooledTemporaryFile(10) as file:
    file.write(b"y" * 100); file.seek(0); print(len(file.read()))
folder = tempfile.mkdtemp()
os.makedirs(folder + "/a/b"); shutil.rmtree(folder); print(os.path.exists(folder), tempfile.gettempdir())`,
    stdout: "10000000\na /mnt/data\n100\nFalse /tmp\n",
  },
  "locales, time zones and scripts of the world": {
    code: `
import datetime, locale, sys, time, unicodedata, zoneinfo
print(locale.setlocale(locale.LC_ALL, ""), sys.getfilesystemencoding(), locale.getpreferredencoding())
locale.setlocale(locale.LC_ALL, "en_US.UTF-8")
print(locale.format_string("%.2f", 1234567.891, grouping=True), sorted(["b", "Z", "ä", "a"], key=locale.strxfrm))
print(datetime.datetime(2026, 7, 1, tzinfo=zoneinfo.ZoneInfo("Asia/Tokyo")).isoformat(), time.strftime("%Z"))
open("日本 ü.txt", "w").write("ok"); print(open("日本 ü.txt").read(), unicodedata.normalize("NFD", "é") == "e\\u0301")`,
    stdout:
      "C.UTF-8 utf-8 UTF-8\n1,234,567.89 ['a', 'ä', 'b', 'Z']\n2026-07-01T00:00:00+09:00 UTC\nok True\n",
  },
  "archives, mappings, locks, copies and links": {
    code: `
import fcntl, gzip, mmap, os, shutil, tarfile, zipfile
os.makedirs("tree/sub"); open("tree/sub/f", "w").write("content"); os.symlink("sub/f", "tree/link"); os.link("tree/sub/f", "tree/hard")
for kind in "zip", "gztar", "xztar":
    shutil.unpack_archive(shutil.make_archive("/tmp/" + kind, kind, "tree"), "/tmp/out-" + kind)
    print(sorted(os.listdir("/tmp/out-" + kind)), open("/tmp/out-" + kind + "/link").read())
with open("tree/sub/f", "r+b") as file:
    fcntl.flock(file, fcntl.LOCK_EX); fcntl.lockf(file, fcntl.LOCK_EX)
    mapped = mmap.mmap(file.fileno(), 0); mapped[:3] = b"CON"; mapped.flush()
shutil.copytree("tree", "copy", symlinks=True)
print(open("copy/hard").read(), os.readlink("copy/link"), os.stat("tree/hard").st_nlink)
os.utime("copy/hard", (1, 2)); os.chmod("copy/hard", 0o741); shutil.copy2("copy/hard", "twin")
print(oct(os.stat("twin").st_mode), os.stat("twin").st_mtime)
os.truncate("twin", 100_000_000); print(os.stat("twin").st_blocks < 100); os.remove("twin")`,
    stdout: `${"['hard', 'link', 'sub'] content\n".repeat(3)}CONtent sub/f 2\n0o100741 2.0\nTrue\n`,
  },
  "a virtual environment": {
    code: `
import subprocess, sys
subprocess.run([sys.executable, "-m", "venv", "--without-pip", "/tmp/env"], check=True)
print(subprocess.check_output(["/tmp/env/bin/python", "-c", "import sys; print(sys.prefix != sys.base_prefix)"], text=True))`,
    stdout: "True\n\n",
  },
  "unix sockets with servers, threads and passed descriptors": {
    code: `
import array, http.client, http.server, os, socket, socketserver, threading
class Server(socketserver.ThreadingUnixStreamServer):
    def get_request(self):
        request, _ = super().get_request()
        return request, ("local", 0)
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers(); self.wfile.write(self.path.encode())
    def log_message(self, *_): pass
server = Server("/tmp/http", Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
client = http.client.HTTPConnection("here")
client.sock = socket.socket(socket.AF_UNIX); client.sock.connect("/tmp/http")
client.request("GET", "/path"); print(client.getresponse().read())
server.shutdown()
left, right = socket.socketpair()
socket.send_fds(left, [b"x"], [os.open("/etc/hostname", os.O_RDONLY)])
print(os.read(socket.recv_fds(right, 1, 1)[1][0], 100))`,
    stdout: "b'/path'\nb'sandbox\\n'\n",
  },
};

export const SHELL: Readonly<Record<string, OrdinaryProgram>> = {
  "process substitution, coprocesses and here strings": {
    code: `
paste -d+ <(seq 2) <(seq 3 4) | tee >(cat >copy)
coproc bc; echo '6*7' >&"\${COPROC[1]}"; read -r answer <&"\${COPROC[0]}"; echo "$answer"
while ! [[ -s copy ]]; do sleep 0.01; done
read -r a b <<<"x y"; echo "$b $a"; mapfile -t lines < <(printf 'p\\nq\\n'); echo "\${#lines[@]}"`,
    stdout: "1+3\n2+4\n42\ny x\n2\n",
  },
  "/dev/stdout, /dev/stdin, /dev/fd and /dev/null": {
    code: `
echo out >/dev/stdout; echo in | cat /dev/stdin; exec 3<<<three; cat /dev/fd/3; echo gone >/dev/null
echo b | sort /dev/stdin -o /dev/stdout; head -c 4 /dev/zero | xxd -p
head -c 8 /dev/urandom | wc -c; (echo full >/dev/full) 2>/dev/null || echo no`,
    stdout: "out\nin\nthree\nb\n00000000\n8\nno\n",
  },
  "GNU timeout, with all that the command started": {
    code: `
timeout 0.2 bash -c 'sleep 60 & sleep 60'; echo $?
(timeout --signal=KILL 0.1 sleep 60; echo $?) 2>/dev/null
timeout 60 true; echo $?; timeout --preserve-status 1 bash -c 'trap "exit 9" TERM; sleep 60 & wait'; echo $?`,
    stdout: "124\n137\n0\n9\n",
  },
  "tar with modes, links, sparse files and pipes": {
    code: `
cd /tmp && mkdir -p d/e; echo x >d/e/f; ln -s e/f d/l; ln d/e/f d/h; chmod 750 d/e; truncate -s 50M d/sparse; touch -d 2001-02-03 d/e/f
tar -cSf - d | zstd -q | (mkdir out && cd out && zstd -dcq | tar -xpf -)
cd out/d; stat -c '%a %h' e h sparse; stat -c %s sparse; readlink l; date -r h +%F; du -k sparse | cut -f1
tar -czf a.tgz e && tar -tzf a.tgz; cpio --version >/dev/null 2>&1 || zip -qr a.zip e && unzip -p a.zip e/f`,
    stdout: "750 2\n644 2\n644 1\n52428800\ne/f\n2001-02-03\n0\ne/\ne/f\nx\n",
  },
  "git: init, branches, merges, clones, stashes, clean-up": {
    code: `
set -e
git init -q r && cd r
echo 1 >f && git add f && git commit -qm one
git switch -qc side && echo 2 >g && git add g && git commit -qm two
git switch -q main && echo 3 >>f && git commit -qam three && git merge -q --no-edit side && git tag v1
echo dirty >>f && git stash -q && git stash pop -q && git diff --stat | tail -1 && git checkout -q f
git gc -q && git fsck --no-progress --no-dangling && git log --oneline | wc -l && git worktree add -q ../w v1 && cat ../w/g
git clone -q . ../c && git -C ../c archive main | tar -t && git -C ../c blame -s f | wc -l`,
    stdout: " 1 file changed, 1 insertion(+)\n4\n2\nf\ng\n2\n",
  },
  "jobs, traps, locks, pipes by name, and many processes at once": {
    code: `
mkfifo p; (echo through >p) & cat p; wait; sleep 60 & kill $!; wait $!; echo $?
for n in 3 4; do (exit $n) & done; wait $!; echo $?; wait
seq 40 | xargs -P 8 -I{} bash -c 'flock lock bash -c "echo {} >>all"'; sort -n all | tail -1; wc -l <all
for i in {1..100}; do (exit 0) & done; wait; echo waited; setsid --fork true; nohup echo hup 2>/dev/null | cat
trap 'echo bye' EXIT; trap 'echo usr1' USR1; kill -USR1 $$`,
    stdout: "through\n143\n4\n40\n40\nwaited\nhup\nusr1\nbye\n",
  },
  "make, with jobs at once, and generated files": {
    code: `
printf 'all: a b\\n\\tcat a b\\n%%:\\n\\t@echo $@ >$@\\n' >Makefile
make -s -j4 && make -q a && echo fresh`,
    stdout: "a\nb\nfresh\n",
  },
  "sorting, splitting and counting larger files": {
    code: `
seq 300000 | shuf >n; sort -n --parallel=2 -S 8M n | sed -n '150000p'; split -n l/4 n part.; cat part.* | md5sum | cut -c1-4 >x
md5sum <n | cut -c1-4 | cmp - x && echo same; awk '{ s += $1 } END { printf "%.0f\\n", s }' n; LC_ALL=en_US.UTF-8 sort <<<$'b\\nA\\na' | tr -d '\\n'
dd if=n bs=64k count=3 status=none | wc -c; comm -12 <(seq 5) <(seq 3 9) | paste -sd,; grep -c 7 n`,
    stdout: "150000\nsame\n45000150000\naAb196608\n3,4,5\n122853\n",
  },
};

export const NODE: Readonly<Record<string, OrdinaryProgram>> = {
  "child processes: exec, spawn, fork, streams, signals": {
    code: `
import { exec, execFileSync, fork, spawn } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { promisify } from "node:util";
console.log((await promisify(exec)("echo $((6 * 7)); python3 -c 'print(7)'")).stdout.trim());
const upper = spawn("tr", ["a-z", "A-Z"]);
upper.stdin.end("piped");
console.log(String((await once(upper.stdout, "data"))[0]));
writeFileSync("child.mjs", "process.on('message', (n) => { process.send(n * 2); process.disconnect(); })");
const child = fork("./child.mjs");
child.send(21);
console.log((await once(child, "message"))[0]);
const sleeper = spawn("sleep", ["60"]);
sleeper.kill();
console.log((await once(sleeper, "exit"))[1]);
try { execFileSync("sh", ["-c", "exit 3"]); } catch (error) { console.log(error.status); }
const late = spawn("sleep", ["60"], { timeout: 50 });
console.log((await once(late, "exit"))[1]);`,
    stdout: "42\n7\nPIPED\n42\nSIGTERM\n3\nSIGTERM\n",
  },
  "workers that share memory": {
    code: `
import { once } from "node:events";
import { Worker } from "node:worker_threads";
const shared = new SharedArrayBuffer(4);
const text = "const { workerData } = require('worker_threads'); for (let i = 0; i < 1000; i++) Atomics.add(new Int32Array(workerData), 0, 1);";
const workers = Array.from({ length: 6 }, () => new Worker(text, { eval: true, workerData: shared }));
await Promise.all(workers.map((worker) => once(worker, "exit")));
console.log(new Int32Array(shared)[0]);`,
    stdout: "6000\n",
  },
  "HTTP over a unix socket, and a cluster": {
    code: `
const cluster = require("node:cluster"), http = require("node:http");
if (cluster.isWorker) http.createServer((_, response) => response.end("served")).listen("/tmp/web");
else {
  const worker = cluster.fork();
  worker.on("listening", () => http.get({ socketPath: "/tmp/web" }, (response) => response.on("data", (data) => { console.log(String(data)); worker.kill(); })));
}`,
    stdout: "served\n",
  },
  "files: watching, streams, compression, encryption, permissions": {
    code: `
import { createCipheriv, createDecipheriv, createHash, generateKeyPairSync, randomBytes, scryptSync, sign, verify } from "node:crypto";
import { appendFileSync, createReadStream, createWriteStream, existsSync, watchFile } from "node:fs";
import { chmod, mkdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { pipeline } from "node:stream/promises";
import { brotliCompressSync, brotliDecompressSync, createGunzip, createGzip } from "node:zlib";
await writeFile("plain", "x".repeat(1e6));
await pipeline(createReadStream("plain"), createGzip(), createGunzip(), createWriteStream("twin"));
console.log((await readFile("twin")).length, brotliDecompressSync(brotliCompressSync("ü")).toString());
const key = scryptSync("word", "salt", 32), iv = randomBytes(16);
const cipher = createCipheriv("aes-256-cbc", key, iv), decipher = createDecipheriv("aes-256-cbc", key, iv);
console.log(decipher.update(cipher.update("secret", "utf8", "hex") + cipher.final("hex"), "hex", "utf8") + decipher.final("utf8"));
const { privateKey, publicKey } = generateKeyPairSync("ed25519");
console.log(verify(null, Buffer.from("m"), publicKey, sign(null, Buffer.from("m"), privateKey)), createHash("sha1").update("").digest("hex").slice(0, 4));
await mkdir("seen");
await writeFile("seen/grows", "");
const grown = new Promise((resolve) => watchFile("seen/grows", { interval: 20 }, ({ size }) => resolve(size > 0)));
const growing = setInterval(() => appendFileSync("seen/grows", "x"), 50);
console.log(await grown ? "new" : "");
clearInterval(growing);
await chmod("twin", 0o600);
console.log(((await stat("twin")).mode & 0o777).toString(8));
await rm("seen", { recursive: true });
console.log(existsSync("seen"), new Intl.DateTimeFormat("de", { dateStyle: "long", timeZone: "UTC" }).format(0));
process.exit();`,
    stdout: "1000000 ü\nsecret\ntrue da39\nnew\n600\nfalse 1. Januar 1970\n",
  },
  "WebAssembly, the test runner and modules that it writes itself": {
    code: `
import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
const wasm = Uint8Array.from([0, 97, 115, 109, 1, 0, 0, 0, 1, 7, 1, 96, 2, 127, 127, 1, 127, 3, 2, 1, 0, 7, 7, 1, 3, 97, 100, 100, 0, 0, 10, 9, 1, 7, 0, 32, 0, 32, 1, 106, 11]);
console.log((await WebAssembly.instantiate(wasm)).instance.exports.add(40, 2));
writeFileSync("made.mjs", "export default 7");
console.log((await import("./made.mjs")).default);
writeFileSync("some.test.mjs", "import test from 'node:test'; test('one', () => {});");
console.log(/^# pass 1$/m.test(execFileSync(process.execPath, ["--test", "--test-reporter=tap"]).toString()));`,
    stdout: "42\n7\ntrue\n",
  },
};
